"""Failpoints inside one process; killing one is tested in test_process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskyard_kit import failpoint

ONE = failpoint.declare("test.one")
TWO = failpoint.declare("test.two")


@pytest.fixture(autouse=True)
def unset() -> Iterator[None]:
    yield
    failpoint.configure("")


def test_nothing_happens_while_unset() -> None:
    failpoint.configure("")
    ONE.hit()


def test_failpoint_acts_only_at_the_configured_hit() -> None:
    failpoint.configure("test.one=raise@2")
    ONE.hit()
    with pytest.raises(failpoint.FailpointError, match=r"failpoint test\.one"):
        ONE.hit()
    ONE.hit()


def test_entries_of_other_services_are_ignored() -> None:
    failpoint.configure("taskdb/test.one=raise;scheduler/unknown=kill", service="runner")
    ONE.hit()
    failpoint.configure("runner/test.one=raise", service="runner")
    with pytest.raises(failpoint.FailpointError):
        ONE.hit()


@pytest.mark.parametrize(
    "setting",
    [
        "test.tree=kill",
        "test.one=explode",
        "test.one",
        "test.one=kill@x",
        "test.one=sleep:a",
        "test.one=pause",
    ],
)
def test_a_bad_entry_is_refused(setting: str) -> None:
    with pytest.raises(failpoint.FailpointError, match="TASKYARD_FAILPOINTS"):
        failpoint.configure(setting)


def test_a_name_is_declared_once() -> None:
    with pytest.raises(failpoint.FailpointError, match="declared twice"):
        failpoint.declare("test.one")
    assert {"test.one", "test.two"} <= set(failpoint.declared())


def test_pause_writes_its_name_and_waits(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    failpoint.configure(f"test.two=pause:{fifo}")
    passed = threading.Event()

    def work() -> None:
        TWO.hit()
        passed.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert fifo.read_text() == "test.two"
    assert not passed.is_set()
    fifo.write_text("go on")
    thread.join(10)
    assert passed.is_set()


async def test_an_awaited_pause_leaves_the_event_loop_free(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    failpoint.configure(f"test.two=pause:{fifo}")
    paused = asyncio.create_task(TWO.reach())
    assert await asyncio.to_thread(fifo.read_text) == "test.two"
    assert not paused.done()
    await asyncio.to_thread(fifo.write_text, "go on")
    await paused
