"""The pages work word for word: every step on them is done in order, and its output compared."""

from __future__ import annotations

import os
import pwd
import re
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from taskyard_standalone.account import Account, can_reach
from taskyard_standalone.binaries import find_binaries
from tests.acceptance.suite import BIN, ROOT, Suite, client_environment
from tests.docs.pages import blocks, is_picture, matches, pages, steps
from tests.docs.shell import follow

PAGE_SECONDS = 240
OWN_POSTGRESQL = "docs/howto/own-postgresql.md"
SPLIT = "\n--><--\n"
DATABASE = "postgresql://taskyard:secret@db.example.com/taskyard"
# What other tests execute: lines inside containers by tests/executors, the picture of the states is generated
# and compared by `make verify`.
# tests/packaging/test_install.py does its steps in an empty environment.
PAGES_ELSEWHERE = {"docs/howto/install.md"}
# tests/verify generates stubs as docs/howto/other-languages.md shows it.
ELSEWHERE_BY_LANGUAGE = {
    # `make chaos` and its relatives take minutes; tests/chaos has their short part.
    "sh": {
        "docs/howto/run-a-runner.md",
        "docs/howto/other-languages.md",
        "docs/faults.md",
        # Not by root: test_a_server_is_made_as_the_page_shows.
        OWN_POSTGRESQL,
    },
    "mermaid": {"docs/state_machine.md"},
    "yaml": {"docs/howto/other-languages.md"},
    # tests/acceptance/test_grpcurl.py has the programs.
    "grpcurl": {"docs/howto/grpcurl.md"},
    "bufcurl": {"docs/howto/grpcurl.md"},
}


@pytest.fixture
def folder(suite: Suite, page: str) -> Path:
    """A folder that looks like the checkout, in which the suite is found."""
    folder = suite.folder if page == "README.md" else suite.folder / re.sub(r"\W+", "-", page)
    folder.mkdir(exist_ok=True)
    for name, target in {
        ".venv": BIN.parent,
        "protos": ROOT / "protos",
        "examples": ROOT / "examples",
    }.items():
        if not (folder / name).exists():
            (folder / name).symlink_to(target)
    return folder


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def database_url(suite: Suite) -> str:
    """Where the suite's PostgreSQL is."""
    found = re.search(r"psql '(.*)'", suite.output())
    assert found is not None
    return found[1]


def owner_url(suite: Suite) -> str:
    """The same as the role that owns the server: it may make databases, Taskyard's own may not."""
    return database_url(suite).replace("//taskyard@/taskyard?", "//postgres@/postgres?")


def new_database(suite: Suite, page: str) -> str:
    """The URL of an empty database on the suite's PostgreSQL."""
    name = "docs_" + re.sub(r"\W+", "_", page.lower())
    with psycopg.connect(owner_url(suite), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" OWNER taskyard')
    return database_url(suite).replace("/taskyard?", f"/{name}?")


def here(suite: Suite, page: str, text: str) -> str:
    """The text with the hosts of the documents replaced by this machine."""
    if DATABASE in text:
        text = text.replace(DATABASE, f"'{new_database(suite, page)}'")
    text = text.replace("127.0.0.1:7420", suite.context["address"])
    text = text.replace("127.0.0.1:7421", suite.context["scheduler"])
    text = text.replace("http://127.0.0.1:7480", suite.context["gateway"])
    if "--global-tasks" in text:
        own = free_port()
        text = text.replace("--global-tasks ", f"--global-tasks --global-tasks-port {own} ")
        text = text.replace("localhost:5000", f"localhost:{own}")
    for port in ("7420", "7421"):
        if f"0.0.0.0:{port}" in text:
            own = free_port()
            text = text.replace(f"0.0.0.0:{port}", f"127.0.0.1:{own}")
            text = text.replace(f"yard.example.com:{port}", f"localhost:{own}")
    return text


@pytest.mark.timeout(PAGE_SECONDS + 60)
@pytest.mark.parametrize("page", [page for page in sorted({*pages()} - PAGES_ELSEWHERE) if list(steps(page))])
def test_every_step_does_what_the_page_shows(suite: Suite, folder: Path, page: str) -> None:
    # One shell for the whole page: what one step sets, the next one uses.
    text = here(suite, page, SPLIT.join(part for step in steps(page) for part in (step.command, step.shown)))
    parts = text.split(SPLIT)
    done = list(zip(parts[::2], parts[1::2], strict=True))
    try:
        outputs = follow(
            [command for command, _ in done],
            folder,
            {**client_environment(), "HOME": str(folder)},
            PAGE_SECONDS,
        )
    except AssertionError as error:
        raise AssertionError(f"{page}: {error}\n{suite.logs()}") from None
    for (command, shown), printed in zip(done, outputs, strict=True):
        assert matches(shown, printed), f"{page}\n$ {command}\n{printed}\n{suite.logs()}"


@pytest.mark.parametrize("page", pages())
def test_every_block_is_executed_or_is_not_a_program(page: str) -> None:
    for block in blocks(page):
        shown = f"{page}: {block.text[:60]!r}"
        if block.language in ("", "text"):
            assert is_picture(block.text), (
                f"{shown} is neither executed nor a picture; see tests/docs/pages.py"
            )
        elif block.language in ELSEWHERE_BY_LANGUAGE:
            assert page in ELSEWHERE_BY_LANGUAGE[block.language], f"{shown} is not executed by any test"
        else:
            assert block.language in ("console", "python", "sql"), f"{shown} is not executed by any test"


@pytest.mark.parametrize("page", [page for page in pages() if any(b.language == "sql" for b in blocks(page))])
def test_every_statement_is_accepted_by_postgresql(suite: Suite, page: str) -> None:
    # Names that the suite's own database does not use.
    own = "docs_" + re.sub(r"\W+", "_", page.lower())
    with psycopg.connect(owner_url(suite), autocommit=True) as connection:
        for block in blocks(page):
            for statement in block.text.split(";") if block.language == "sql" else ():
                if statement.strip():
                    connection.execute(statement.replace("taskyard", f"{own}_sql").encode())


def test_a_server_is_made_as_the_page_shows() -> None:
    [script] = (block.text for block in blocks(OWN_POSTGRESQL) if block.language == "sh")
    statements = " ".join(block.text for block in blocks(OWN_POSTGRESQL) if block.language == "sql")
    port = free_port()
    script = script.replace("5433", port) + "pg_ctl --pgdata=pgdata --mode=immediate stop\n"
    with tempfile.TemporaryDirectory(prefix="taskyard-docs-") as folder:
        user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        if user is not None:
            os.chown(folder, user, -1)
        programs = find_binaries().postgres.parent
        if user is not None and not can_reach(programs, Account(user, pwd.getpwnam("nobody").pw_gid)):
            pytest.skip("the sources lie below a directory that an ordinary user cannot enter")
        ended = subprocess.run(
            ["bash", "-euc", script],
            input=f"{statements}\\c taskyard\nSELECT 'owner ' || current_user;\n",
            env={
                "PATH": f"{programs}{os.pathsep}{os.defpath}",
                "PGPASSWORD": "the administrator's password",
                "HOME": folder,
            },
            cwd=folder,
            user=user,
            capture_output=True,
            text=True,
            timeout=PAGE_SECONDS,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "CREATE ROLE" in ended.stdout and "CREATE DATABASE" in ended.stdout, ended.stdout + ended.stderr
    assert "owner postgres" in ended.stdout


def test_the_picture_of_top_has_the_titles_that_top_has(suite: Suite) -> None:
    suite.done("submit", "--runner-label", "zone=nowhere", "--", "true")
    real = {" ".join(line.split()) for line in suite.done("top", "--once").splitlines()}
    (picture,) = (block.text for block in blocks("README.md") if block.text.startswith("taskyard top"))
    titles = [" ".join(line.split()) for line in picture.splitlines() if re.match(r"[A-Z]+  +[A-Z]+", line)]
    assert len(titles) == 3
    # Phases without tasks have no column.
    missing = [title for title in titles if not any(line.startswith(title) for line in real)]
    assert not missing, f"README.md shows {missing}, top has {real}"


def test_records_of_decisions_hold_no_blocks() -> None:
    # The other folder without steps is generated from sources and compared by `make verify`.
    for record in (ROOT / "docs/decisions").glob("*.md"):
        assert "```" not in record.read_text(), f"{record.name}: what is executed belongs onto another page"


def test_every_target_of_make_on_a_page_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in (*pages(), "CONTRIBUTING.md"):
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE):
            assert target in targets, f"{page}: there is no `make {target}`"


@pytest.mark.parametrize("page", pages())
def test_every_link_has_a_target(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}, which does not exist"
