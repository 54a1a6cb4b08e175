"""`make longlog`: a log of a million lines, followed live and listed by pages; memory is flat at every hop.

A task prints numbers through the whole suite: program, warden, agent, scheduler, taskdb, command line. Every
line must come, in order, both live and from the list, and no process may grow by more than a bound that does
not depend on the number of lines.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import psutil

from taskyard.v1 import task_service_pb2, task_service_pb2_grpc
from tests.acceptance.suite import BIN, Suite, client_environment, running_suite

LINES = 1_000_000
# What buffers, caches and allocators may take; the log itself, as entries, is more than 100 MB.
GROWTH_BYTES = 80_000_000


class Memory:
    """The largest resident memory of each process, sampled while something runs."""

    def __init__(self, root: int) -> None:
        self._root = psutil.Process(root)
        self.before = self._sample()
        self.most = dict(self.before)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample while the block runs."""
        done = threading.Event()
        thread = threading.Thread(target=self._watch, args=(done,))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def growth(self) -> dict[str, int]:
        """By how many bytes each process has grown at most."""
        return {name: most - self.before[name] for name, most in self.most.items() if name in self.before}

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(0.5):
            for name, size in self._sample().items():
                self.most[name] = max(self.most.get(name, 0), size)

    def _sample(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for process in (self._root, *self._root.children(recursive=True)):
            try:
                words = process.cmdline()
                if any("taskyard" in word for word in words):
                    name = next((word for word in words if word.startswith("taskyard_")), process.name())
                    found[f"{name} {process.pid}"] = process.memory_info().rss
            except psutil.Error:
                continue
        return found


def check(suite: Suite, lines: int) -> dict[str, int]:
    """Follow and list a log of `lines` lines; returns the growth of each process."""
    memory = Memory(suite.process.pid)
    output = Path(suite.folder) / "followed"
    with memory.watched():
        with output.open("wb") as file:
            command = [str(BIN / "taskyard"), "run", "--", "seq", "1", str(lines)]
            subprocess.run(command, cwd=suite.folder, env=client_environment(), stdout=file, check=True)
        _assert_numbers(output.open(), lines, "followed")
        _assert_numbers(_listed(suite), lines, "listed")
    return memory.growth()


def _listed(suite: Suite) -> Iterator[str]:
    """The messages of the newest task's log, page by page."""
    metadata = (("authorization", f"Bearer {suite.context['key']}"),)
    with grpc.insecure_channel(suite.context["address"]) as channel:
        stub = task_service_pb2_grpc.TaskServiceStub(channel)
        newest = task_service_pb2.ListTasksRequest(parent="tenants/default", page_size=1)
        [task] = stub.ListTasks(newest, metadata=metadata).tasks
        request = task_service_pb2.ListTaskLogsRequest(parent=task.name, page_size=1000)
        while True:
            page = stub.ListTaskLogs(request, metadata=metadata)
            yield from (entry.message for entry in page.entries)
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return


def _assert_numbers(found: Iterator[str], lines: int, how: str) -> None:
    expected = 0
    for line in found:
        expected += 1
        assert line.strip() == str(expected), f"{how}: line {expected} is {line[:80]!r}"
    assert expected == lines, f"{how}: {expected} of {lines} lines"


def main() -> None:
    """Run it and print what was seen."""
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    with running_suite() as suite:
        start = time.perf_counter()
        growth = check(suite, lines)
        print(f"{lines:,} lines followed live and listed in {time.perf_counter() - start:.0f} s")
    for name, size in sorted(growth.items()):
        print(f"{name:<40} grew by {size / 1e6:6.1f} MB")
    sys.exit(any(size > GROWTH_BYTES for size in growth.values()))


if __name__ == "__main__":
    main()
