"""A driver as a process: requests and answers as JSON lines, matched by their id."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.harness.leash import tied

# A line may carry a thousand items of a stream.
LINE_BYTES = 64 * 1024 * 1024
END_SECONDS = 20.0


class DriverError(Exception):
    """The driver broke its protocol or ended."""


class Driver:
    """One running driver."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self._next_id = 0
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path
    ) -> Driver:
        """Start a driver in a folder; its standard error is appended to `log`."""
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *tied(*command),
                cwd=folder,
                env=dict(environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                limit=LINE_BYTES,
            )
        return cls(process, log)

    def send(self, op: str, arguments: Mapping[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """Send a request; the future becomes its whole answer."""
        assert self._process.stdin is not None
        self._next_id += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[self._next_id] = answer
        line = json.dumps({"id": self._next_id, "op": op, **arguments})
        self._process.stdin.write(line.encode() + b"\n")
        if self._reading.done():
            self._fail(DriverError(f"the driver has ended: {self._tail()}"))
        return answer

    async def stop(self) -> None:
        """End the driver by the end of its input; one that does not end is killed, which is an error."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
                await self._reading
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
            raise DriverError(f"the driver does not end with its input: {self._tail()}") from None

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            try:
                answer = json.loads(line)
                waiting = self._waiting.pop(answer["id"])
            except (ValueError, KeyError, TypeError):
                self._fail(DriverError(f"not an answer: {line[:500]!r}"))
                continue
            if not waiting.done():
                waiting.set_result(answer)
        self._fail(DriverError(f"the driver has ended: {self._tail()}"))

    def _fail(self, error: DriverError) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
                # Not every started request is finished by its table.
                waiting.exception()
        self._waiting.clear()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]
