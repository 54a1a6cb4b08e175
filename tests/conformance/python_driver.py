"""The driver of the Python client; the protocol is in README.md."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

from taskyard import (
    After,
    Client,
    ContextError,
    ContextExpired,
    NoContext,
    PlaintextRefused,
    Task,
    command,
    errors,
    external,
    function,
    tracing,
)
from taskyard.new_task import NewTask
from taskyard.v1.common_pb2 import Payload
from taskyard.v1.schedule_pb2 import Schedule

KINDS: tuple[tuple[type[Exception], str], ...] = (
    (NoContext, "NO_CONTEXT"),
    (ContextExpired, "CONTEXT_EXPIRED"),
    (PlaintextRefused, "PLAINTEXT_REFUSED"),
    (ContextError, "CONTEXT_INVALID"),
    (errors.ServerUnreachable, "SERVER_UNREACHABLE"),
    (errors.CertificateUntrusted, "CERTIFICATE_UNTRUSTED"),
    (errors.VersionUnsupported, "VERSION_UNSUPPORTED"),
    (TimeoutError, "TIMEOUT"),
)


def kind_of(error: Exception) -> str:
    for cls, kind in KINDS:
        if isinstance(error, cls):
            return kind
    if isinstance(error, errors.TaskyardError):
        return error.reason or error.code.name
    return f"{type(error).__name__}"


def show_error(error: Exception) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": kind_of(error), "message": str(error), "fields": [], "retry_after": None}
    if isinstance(error, errors.InvalidArgument):
        shown["fields"] = [{"field": v.field, "description": v.description} for v in error.violations]
    if isinstance(error, errors.TaskyardError) and error.retry_after is not None:
        shown["retry_after"] = error.retry_after.total_seconds()
    return shown


def show_task(task: Task) -> dict[str, Any]:
    failure = task.error
    return {
        "name": task.name,
        "phase": str(task.phase),
        "attempt": task.attempt,
        "exit_code": task.exit_code,
        "payload_text": task.proto.spec.payload.raw.decode(),
        "output": task.output,
        "error": None if failure is None else {"code": failure.code, "message": failure.message},
        "traceparent": task.proto.metadata.traceparent,
    }


def show_schedule(schedule: Schedule) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "cron": list(schedule.cron),
        "paused": schedule.paused,
        "note": schedule.pause_note,
    }


def new_task(
    *,
    command_: list[str] | None = None,
    function_: str = "",
    payload: Any = None,
    payload_text: str = "",
    task_id: str = "",
    request_id: str = "",
    labels: Mapping[str, str] | None = None,
    retries: int | None = None,
    after: list[dict[str, Any]] | None = None,
) -> NewTask:
    options: dict[str, Any] = {"id": task_id, "request_id": request_id, "labels": labels or {}}
    options["after"] = [After(**prerequisite) for prerequisite in after or ()]
    if retries is not None:
        options["retry"] = {"max_retries": retries, "initial": 0.01, "max": 0.01}
    if payload_text:
        payload = Payload(raw=payload_text.encode(), content_type="application/json")
    if function_:
        return function(function_, payload, **options)
    if command_:
        return command(*command_, payload=payload, **options)
    return external(payload=payload, **options)


def given_task(**given: Any) -> NewTask:
    given.pop("external", None)
    renamed = {f"{name}_" if name in ("command", "function") else name: given[name] for name in given}
    return new_task(**renamed)


class Driver:
    """The client and the open streams of this driver."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._streams: dict[str, AsyncIterator[dict[str, Any]]] = {}

    @property
    def client(self) -> Client:
        assert self._client is not None, "connect comes first"
        return self._client

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        number, op = request.pop("id"), request.pop("op")
        try:
            return {"id": number, "ok": await getattr(self, f"op_{op}")(**request)}
        except Exception as error:
            return {"id": number, "error": show_error(error)}

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def op_hello(self) -> dict[str, Any]:
        return {"language": "python", "features": []}

    async def op_connect(self, **options: Any) -> dict[str, Any]:
        await self.close()
        # A step has 30 s for its answer, which is as long as the client waits out an outage by default.
        patience = options.pop("outage_timeout", 10)
        self._client = Client(options.pop("address", None), patience=patience, **options)
        return {"address": self.client.context.address, "tenant": self.client.context.tenant}

    async def op_create(self, traceparent: str = "", **given: Any) -> dict[str, Any]:
        tracing.pass_on(traceparent)
        created = await self.client.create(given_task(**given))
        return {"name": created.name, "outcome": str(created.outcome), "phase": str(created.phase)}

    async def op_get(self, task: str) -> dict[str, Any]:
        return show_task(await self.client.get(task))

    async def op_wait(self, task: str, timeout: float | None = None) -> dict[str, Any]:
        return show_task(await self.client.wait(task, timeout=timeout))

    async def op_cancel(self, task: str, reason: str = "") -> dict[str, Any]:
        return show_task(await self.client.cancel(task, reason=reason))

    async def op_list(self, filter: str = "", page_size: int = 1000) -> dict[str, Any]:
        return {"names": [task.name async for task in self.client.list(filter, page_size=page_size)]}

    async def op_schedule_create(
        self, schedule: str, cron: list[str], paused: bool = False, note: str = "", **task: Any
    ) -> dict[str, Any]:
        made = await self.client.schedules.create(
            schedule, given_task(**task), cron=cron, paused=paused, pause_note=note
        )
        return show_schedule(made)

    async def op_schedule_get(self, schedule: str) -> dict[str, Any]:
        return show_schedule(await self.client.schedules.get(schedule))

    async def op_schedule_list(self, filter: str = "", page_size: int = 0) -> dict[str, Any]:
        return {"names": [schedule.name async for schedule in self.client.schedules.list(filter)]}

    async def op_schedule_pause(self, schedule: str, note: str = "") -> dict[str, Any]:
        return show_schedule(await self.client.schedules.pause(schedule, note))

    async def op_schedule_resume(self, schedule: str) -> dict[str, Any]:
        return show_schedule(await self.client.schedules.resume(schedule))

    async def op_schedule_run(self, schedule: str) -> dict[str, Any]:
        return show_task(await self.client.schedules.run(schedule))

    async def op_schedule_delete(self, schedule: str) -> dict[str, Any]:
        await self.client.schedules.delete(schedule)
        return {}

    async def op_watch(self, stream: str, tasks: list[str] | None = None, **options: Any) -> dict[str, Any]:
        async def items() -> AsyncIterator[dict[str, Any]]:
            async for event in self.client.watch(*(tasks or ()), **options):
                yield {
                    "type": str(event.type),
                    "name": event.task.name,
                    "phase": str(event.phase),
                    "version": event.version,
                }

        self._streams[stream] = items()
        return {}

    async def op_logs(self, stream: str, task: str, follow: bool = False) -> dict[str, Any]:
        async def items() -> AsyncIterator[dict[str, Any]]:
            async for entry in self.client.logs(task, follow=follow):
                yield {
                    "message": entry.message,
                    "level": str(entry.level),
                    "generation": entry.generation,
                    "sequence": entry.sequence,
                }

        self._streams[stream] = items()
        return {}

    async def op_next(self, stream: str, count: int) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        while len(items) < count:
            try:
                items.append(await anext(self._streams[stream]))
            except StopAsyncIteration:
                return {"items": items, "ended": True}
        return {"items": items, "ended": False}

    async def op_close(self, stream: str) -> dict[str, Any]:
        await self._streams.pop(stream).aclose()  # type: ignore[attr-defined]
        return {}


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    driver, running = Driver(), set[asyncio.Task[None]]()

    async def respond(line: bytes) -> None:
        print(json.dumps(await driver.answer(json.loads(line))), flush=True)

    async for line in reader:
        task = asyncio.create_task(respond(line))
        running.add(task)
        task.add_done_callback(running.discard)
    for task in running:
        task.cancel()
    await driver.close()


if __name__ == "__main__":
    asyncio.run(main())
