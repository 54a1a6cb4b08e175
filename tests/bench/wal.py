"""Where the write-ahead log goes: bytes per task of each table and index, read with pg_waldump."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import psycopg

from taskyard_standalone.binaries import find_binaries
from tests.bench.database import migrated
from tests.bench.measure import Figure, Report
from tests.bench.taskdb import Load
from tests.harness.keys import make_key
from tests.harness.postgres import PostgresServer
from tests.harness.taskdb_process import taskdb_process

_RECORD = re.compile(r"^rmgr: (\S+)\s+len \(rec/tot\):\s+(\d+)/\s*(\d+),.*?desc: (\S+)")
_BLOCK = re.compile(r"rel \d+/\d+/(\d+)")
# Relations: pg_toast and system tables are one line each, partitions count for their table.
_NAMES = """
SELECT pg_relation_filenode(c.oid), CASE WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname END
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'i', 't', 'S', 'm')
"""


async def run(server: PostgresServer, directory: Path, report: Report, *, quick: bool) -> None:
    """Create and run tasks, then print the WAL of each relation and the share of page images."""
    count = 2000 if quick else 20_000
    with migrated(server) as url, taskdb_process(url, directory) as taskdb:
        load = Load(taskdb.address, url)
        epoch = await load.open_session(make_key(url, "runner").split("_")[1])
        await load.batch_creates(1000)
        await load.drain(epoch, 1000)
        with (
            psycopg.connect(url, autocommit=True) as connection,
            psycopg.connect(server.admin_url, autocommit=True) as admin,
        ):
            start = _position(admin)
            await load.batch_creates(count)
            await load.drain(epoch, count)
            end = _position(admin)
            names: dict[int, str] = dict(connection.execute(_NAMES).fetchall())
        await load.channel.close()
        # Before the database is dropped, which makes a checkpoint and recycles the files.
        written, images = _read(next(directory.rglob("pg_wal")), start, end, names)
    for (name, kind), size in sorted(written.items(), key=lambda item: -item[1]):
        if size / count >= 1:
            report.add(Figure(f"WAL {name} {kind}", size / count, "bytes"))
    report.add(Figure("WAL of page images", images / count, "bytes"))
    report.add(Figure("WAL in all", sum(written.values()) / count, "bytes"))


def _position(connection: psycopg.Connection) -> str:
    # The switch flushes: what is not flushed is not in the files that pg_waldump reads.
    row = connection.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
    connection.execute("SELECT pg_switch_wal()")
    assert row is not None
    return str(row[0])


def _read(files: Path, start: str, end: str, names: dict[int, str]) -> tuple[Counter[tuple[str, str]], int]:
    program = find_binaries().postgres.with_name("pg_waldump")
    command = [str(program), "-p", str(files), "-s", start, "-e", end]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    written: Counter[tuple[str, str]] = Counter()
    images = 0
    for line in listing.splitlines():
        record = _RECORD.match(line)
        if record is None:
            continue
        manager, own, total, what = record.groups()
        block = _BLOCK.search(line)
        relation = names.get(int(block.group(1)), "other") if block else manager
        written[(relation, what)] += int(total)
        images += int(total) - int(own)
    return written, images
