"""LeaseService.CompleteRuns: runs that ended well before their start was reported, in columns.

No object is made for a run that is completed. Whatever the columns cannot complete is reported run by run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

from google.protobuf.message import DecodeError

from taskyard.errors import FieldInvalid, InvalidArgument
from taskyard.v1 import lease_service_pb2
from taskyard_kit.wire import in_report
from taskyard_taskdb.domain.words import Phase
from taskyard_taskdb.rpc.reports import MAX_REPORTS, TASK_NAME, ReportBatch, fill_result
from taskyard_taskdb.rpc.validate import validate
from taskyard_taskdb.storage.batch import Batcher
from taskyard_taskdb.storage.report.reports import Applied, Outcome
from taskyard_taskdb.storage.report.short_runs import ShortRuns, ShortRunWriter, joined

Request = lease_service_pb2.CompleteRunsRequest
Rejected = list[tuple[int, Outcome]]
"""Places of runs that were not completed, and why or with which phase."""

# A column that no run may lack, and what stands for the values of the others where they are not sent.
_NEEDED = object()
_COLUMNS: dict[str, Any] = {
    "generations": _NEEDED,
    "lease_ids": _NEEDED,
    "start_times": _NEEDED,
    "end_times": _NEEDED,
    "results": b"",
    "exit_codes": None,
    "start_checkpoints": 0,
    "log_sequences": None,
}
# The microseconds of 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z.
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
_ALLOWED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
_COMPLETED = Applied(Phase.SUCCEEDED)


class ShortRunBatch:
    """Batches the short runs of concurrent calls: up to a thousand per flush, one flush at a time."""

    def __init__(self, writer: ShortRunWriter, reports: ReportBatch) -> None:
        self._writer = writer
        self._reports = reports
        self._calls: Batcher[ShortRuns, Rejected] = Batcher(
            self._flush, max_items=MAX_REPORTS, max_weight=MAX_REPORTS, weigh=len
        )

    async def complete(self, runs: ShortRuns) -> Rejected:
        """Complete runs; returns those that are not completed by this."""
        return await self._calls.submit(runs)

    async def close(self) -> None:
        """Complete the runs that were accepted and are still queued."""
        await self._calls.close()

    async def _flush(self, calls: list[ShortRuns]) -> list[Rejected]:
        runs = joined(calls)
        rejected: list[Rejected] = [[] for _ in calls]
        refused = sorted(await self._writer.complete(runs))
        if not refused:
            return rejected
        outcomes = await self._reports.apply([runs.report(n) for n in refused])
        owners = [(owner, place) for owner, call in enumerate(calls) for place in range(len(call))]
        for n, outcome in zip(refused, outcomes, strict=True):
            if outcome != _COMPLETED:
                owner, place = owners[n]
                rejected[owner].append((place, outcome))
        return rejected


class ShortRunHandler:
    """LeaseService.CompleteRuns."""

    def __init__(self, batch: ShortRunBatch) -> None:
        self._batch = batch

    async def CompleteRuns(self, request: Request, context: Any) -> lease_service_pb2.CompleteRunsResponse:
        """Complete runs; the response names those that are not completed by this call."""
        rejected = await self._batch.complete(read_runs(request))
        response = lease_service_pb2.CompleteRunsResponse()
        places = _places(request) if rejected else []
        for place, outcome in rejected:
            holder, run = places[place]
            exception = response.exceptions.add(holder=holder, run=run)
            fill_result(exception.result, outcome)
        return response


def read_runs(request: Request) -> ShortRuns:
    """The runs as stored values. Raises FieldInvalid."""
    tasks: list[str] = []
    runner_ids: list[str] = []
    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for n, holder in enumerate(request.holders):
        runs = holder.runs
        count = len(runs.tasks)
        if not count or not holder.runner_id:
            field = "runs.tasks" if not count else "runner_id"
            raise FieldInvalid.of(f"holders[{n}].{field}", "must not be empty")
        tasks += runs.tasks
        runner_ids += [holder.runner_id] * count
        for name, missing in _COLUMNS.items():
            columns[name] += _values(getattr(runs, name), name, missing, count, n)
    if not 1 <= len(tasks) <= MAX_REPORTS:
        problem = (
            f"must have 1 to {MAX_REPORTS} runs in all, not {len(tasks)}; send the others in another call"
        )
        raise FieldInvalid.of("holders", problem)
    tenant_ids, task_ids = _split(request, tasks)
    _check_values(request, columns)
    return ShortRuns(
        tenant_ids=tenant_ids,
        task_ids=task_ids,
        generations=columns["generations"],
        lease_ids=columns["lease_ids"],
        runner_ids=runner_ids,
        start_times=_clamped(columns["start_times"]),
        end_times=_clamped(columns["end_times"]),
        results=columns["results"],
        exit_codes=columns["exit_codes"],
        checkpoints=columns["start_checkpoints"],
        log_sequences=columns["log_sequences"],
    )


def _values(sent: Sequence[Any], name: str, missing: Any, count: int, holder: int) -> Iterable[Any]:
    if len(sent) == count:
        return sent
    if sent or missing is _NEEDED:
        problem = f"must have {count} elements, one for each of tasks, not {len(sent)}"
        raise FieldInvalid.of(f"holders[{holder}].runs.{name}", problem)
    return repeat(missing, count)


def _split(request: Request, tasks: Sequence[str]) -> tuple[list[str], list[str]]:
    """The tenant and the id of each task. Raises FieldInvalid for what is not the name of a task."""
    # Names end where no name can have a character, so that no two of them make up for each other.
    parts = "/\n/".join(tasks).split("/")
    tenant_ids, task_ids = parts[1::5], parts[3::5]
    if not (
        len(parts) == 5 * len(tasks) - 1
        and parts[0::5].count("tenants") == parts[2::5].count("tasks") == len(tasks)
        and parts[4::5].count("\n") == len(tasks) - 1
        and all(tenant_ids)
        and all(task_ids)
        and max(map(len, tenant_ids)) <= 64
        and max(map(len, task_ids)) <= 256
        and not "".join((*set(tenant_ids), *task_ids)).encode().translate(None, _ALLOWED)
    ):
        place = next(n for n, name in enumerate(tasks) if TASK_NAME.fullmatch(name) is None)
        problem = f"must be tenants/{{tenant}}/tasks/{{task}}, not {tasks[place][:80]!r}"
        raise _invalid(request, "tasks", place, problem)
    return tenant_ids, task_ids


def _clamped(times: list[int]) -> list[int]:
    """The nearest times that can be stored, as of a report."""
    if min(times) >= _FIRST_TIME and max(times) <= _LAST_TIME:
        return times
    return [min(max(time, _FIRST_TIME), _LAST_TIME) for time in times]


def _check_values(request: Request, columns: dict[str, list[Any]]) -> None:
    """Raises FieldInvalid for a value that no run can have."""
    for name, least in (("generations", 1), ("start_checkpoints", 0), ("log_sequences", 0)):
        column = columns[name]
        if column[0] is None and column.count(None) == len(column):
            continue
        if min(filter(None, column), default=least) < least or (least and not all(column)):
            place = next(n for n, value in enumerate(column) if value is not None and value < least)
            raise _invalid(request, name, place, f"must be at least {least}, not {column[place]}")
    for result in filter(None, set(columns["results"])):
        problem = _find_problem(result)
        if problem:
            raise _invalid(request, "results", columns["results"].index(result), problem)


def _find_problem(result: bytes) -> str:
    """Why this is no result that a report could have; empty if it is one."""
    try:
        validate(in_report(result))
    except (DecodeError, RecursionError):
        return "must be an encoded TaskResult"
    except InvalidArgument as error:
        return f"must be a valid TaskResult: {error}"
    return ""


def _places(request: Request) -> list[tuple[int, int]]:
    """The holder of each run and its place there."""
    return [(n, run) for n, holder in enumerate(request.holders) for run in range(len(holder.runs.tasks))]


def _invalid(request: Request, name: str, place: int, problem: str) -> FieldInvalid:
    holder, run = _places(request)[place]
    return FieldInvalid.of(f"holders[{holder}].runs.{name}[{run}]", problem)
