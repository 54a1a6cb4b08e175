"""RunnerService: administrators list, label, drain and delete runners."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from taskyard.errors import FieldImmutable, FieldInvalid, NotFound
from taskyard.v1 import runner_pb2, runner_service_pb2
from taskyard_taskdb.domain import filter as filters
from taskyard_taskdb.domain import page
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.filter_fields import RUNNER_FIELDS
from taskyard_taskdb.domain.names import parse_runner_name
from taskyard_taskdb.rpc import access, pages
from taskyard_taskdb.rpc.convert import fill_held, fill_runner, runner_filter_fields, shorten_runner
from taskyard_taskdb.rpc.times import set_time
from taskyard_taskdb.rpc.validate import check_text
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.runner import admin as runner_admin
from taskyard_taskdb.storage.runner import runners
from taskyard_taskdb.storage.runner.admin import Edit, Settings
from taskyard_taskdb.watch.hub import Hub

BASIC = runner_service_pb2.RUNNER_VIEW_BASIC
FULL = runner_service_pb2.RUNNER_VIEW_FULL
# Runners that a list reads at a time to find those that match its filter.
SCAN = 500


class RunnerHandler:
    """RunnerService. Changes are stored; schedulers are notified and forward them to the runner."""

    def __init__(self, pool: Pool, bus: Bus, hub: Hub) -> None:
        self._pool = pool
        self._bus = bus
        self._hub = hub

    async def GetRunner(
        self, request: runner_service_pb2.GetRunnerRequest, context: Any
    ) -> runner_service_pb2.GetRunnerResponse:
        runner = await self._show(parse_runner_name(request.name), request.view or FULL)
        return runner_service_pb2.GetRunnerResponse(runner=runner)

    async def ListRunners(
        self, request: runner_service_pb2.ListRunnersRequest, context: Any
    ) -> runner_service_pb2.ListRunnersResponse:
        condition = filters.parse(request.filter, RUNNER_FIELDS) if request.filter else None
        bound = pages.binding("runners", request.filter, str(request.show_deleted))
        position = pages.decode(request.page_token, bound, str)
        after = position[0] if position else ""
        size = page.page_size(request.page_size)
        response = runner_service_pb2.ListRunnersResponse()
        async with self._pool.reading(planned=True) as tx:
            while True:
                ids = await runner_admin.list_ids(tx, after, SCAN, deleted=request.show_deleted)
                for runner in await _read(tx, ids, request.view or BASIC) if ids else ():
                    if condition is not None and not condition.matches(runner_filter_fields(runner)):
                        continue
                    if len(response.runners) == size:
                        last = parse_runner_name(response.runners[-1].name)
                        response.next_page_token = pages.encode((last,), bound)
                        return response
                    response.runners.append(runner)
                if len(ids) < SCAN:
                    return response
                after = ids[-1]

    async def UpdateRunner(
        self, request: runner_service_pb2.UpdateRunnerRequest, context: Any
    ) -> runner_service_pb2.UpdateRunnerResponse:
        runner_id = parse_runner_name(request.runner.name, "runner.name")
        _check_mask(request)
        labels = dict(request.runner.admin_labels)
        _check_labels(labels)

        def decide(found: Settings) -> Edit | None:
            if found.admin_labels == labels:
                return None
            return Edit(runner_admin.labelled(found, labels), ChangeEvent.RUNNER_UPDATED, {"labels": labels})

        await self._change(runner_id, decide, request.runner.resource_version)
        return runner_service_pb2.UpdateRunnerResponse(runner=await self._show(runner_id, FULL))

    async def DrainRunner(
        self, request: runner_service_pb2.DrainRunnerRequest, context: Any
    ) -> runner_service_pb2.DrainRunnerResponse:
        runner_id = parse_runner_name(request.name)
        check_text(request.drain.reason, "drain.reason")
        requested = request.drain
        requested.ClearField("request_time")

        def decide(found: Settings) -> Edit | None:
            if found.drain is not None and _same_drain(found.drain, requested):
                return None
            stored = runner_pb2.DrainRequest()
            stored.CopyFrom(requested)
            set_time(stored.request_time, datetime.now(UTC))
            settings = runner_admin.drained(found, stored.SerializeToString())
            details = {"mode": runner_pb2.DrainMode.Name(requested.mode), "reason": requested.reason}
            return Edit(settings, ChangeEvent.RUNNER_DRAIN_REQUESTED, {k: v for k, v in details.items() if v})

        await self._change(runner_id, decide)
        return runner_service_pb2.DrainRunnerResponse(runner=await self._show(runner_id, FULL))

    async def UndrainRunner(
        self, request: runner_service_pb2.UndrainRunnerRequest, context: Any
    ) -> runner_service_pb2.UndrainRunnerResponse:
        runner_id = parse_runner_name(request.name)

        def decide(found: Settings) -> Edit | None:
            if found.drain is None:
                return None
            return Edit(runner_admin.drained(found, None), ChangeEvent.RUNNER_UNDRAINED, {})

        await self._change(runner_id, decide)
        return runner_service_pb2.UndrainRunnerResponse(runner=await self._show(runner_id, FULL))

    async def DeleteRunner(
        self, request: runner_service_pb2.DeleteRunnerRequest, context: Any
    ) -> runner_service_pb2.DeleteRunnerResponse:
        runner_id, actor = parse_runner_name(request.name), access.caller()
        notice = await self._pool.run(
            lambda tx: runner_admin.delete(tx, runner_id, actor, force=request.force)
        )
        self._bus.publish(notice)
        self._notify(runner_id)
        return runner_service_pb2.DeleteRunnerResponse()

    async def _change(
        self, runner_id: str, decide: Callable[[Settings], Edit | None], resource_version: int = 0
    ) -> None:
        actor = access.caller()
        if await self._pool.run(
            lambda tx: runner_admin.change(tx, runner_id, decide, actor, resource_version)
        ):
            self._notify(runner_id)

    def _notify(self, runner_id: str) -> None:
        self._bus.publish(CommitNotice(runners={runner_id}))
        self._hub.wake()

    async def _show(self, runner_id: str, view: int) -> runner_pb2.Runner:
        async with self._pool.reading() as tx:
            found = await _read(tx, [runner_id], view)
        if not found:
            raise NotFound("runner", f"runners/{runner_id}")
        return found[0]


async def _read(tx: Tx, runner_ids: list[str], view: int) -> list[runner_pb2.Runner]:
    held = await runner_admin.held_tasks(tx, runner_ids)
    made = []
    for record in await runners.read(tx, runner_ids):
        runner = runner_pb2.Runner()
        fill_runner(runner, record)
        fill_held(runner, held[record.runner_id])
        if view == BASIC:
            shorten_runner(runner)
        made.append(runner)
    return made


def _same_drain(stored: bytes, requested: runner_pb2.DrainRequest) -> bool:
    found = runner_pb2.DrainRequest.FromString(stored)
    found.ClearField("request_time")
    return found == requested


def _check_mask(request: runner_service_pb2.UpdateRunnerRequest) -> None:
    for path in request.update_mask.paths:
        if path in ("*", "admin_labels"):
            continue
        if path.partition(".")[0] not in runner_pb2.Runner.DESCRIPTOR.fields_by_name:
            raise FieldInvalid.of("update_mask", f"{path!r} is not a field of a runner", "field_mask")
        raise FieldImmutable.of("update_mask", f"{path} cannot be changed; admin_labels can", "field_mask")


def _check_labels(labels: dict[str, str]) -> None:
    for key, value in labels.items():
        field = f'runner.admin_labels["{key[:80]}"]'
        if not 1 <= len(key) <= 128:
            raise FieldInvalid.of(field, f"a key has 1 to 128 characters, not {len(key)}")
        if len(value) > 256:
            raise FieldInvalid.of(field, f"a value has at most 256 characters, not {len(value)}")
        check_text(key + value, field)
