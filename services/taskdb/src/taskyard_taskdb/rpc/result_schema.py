"""Results of tasks checked against the schema of their type: a success that does not match is a failure."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from datetime import timedelta

from taskyard.errors import ResultCheckPending
from taskyard.v1 import common_pb2, task_pb2
from taskyard_kit.shutdown import end_tasks
from taskyard_taskdb.domain.event import Failed, runner
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.words import ErrorClass
from taskyard_taskdb.rpc.schema_checks import SchemaChecks, Violations
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report.reports import Report, ReportKind
from taskyard_taskdb.storage.tenant import task_types
from taskyard_taskdb.storage.transition.task_rows import Key

CODE = "RESULT_SCHEMA_VIOLATION"
# Violations that the error message lists.
MAX_REPORTED = 5
# Checks in the background, running or with a verdict that no report has asked for yet.
MAX_PENDING = 256
RETRY_AFTER = timedelta(milliseconds=250)
PATH = "result.output"

Run = tuple[str, str, int]
"""Tenant, task and generation."""
_Pending = tuple[Run, int, bytes]
"""The run, its lease and the digest of its result."""


class ResultChecks:
    """Checks results. Costs nothing if no type has a result schema, else one read per batch of successes.

    A check that takes long runs in a process. Its report is answered ResultCheckPending, so that no other
    report waits; the repeated report finds the verdict.
    """

    def __init__(self, pool: Pool, types: TypeCache, schemas: SchemaChecks) -> None:
        self._pool = pool
        self._types = types
        self._schemas = schemas
        self._pending: OrderedDict[_Pending, asyncio.Task[Violations]] = OrderedDict()

    async def checked(self, reports: Sequence[Report]) -> Sequence[Report | ResultCheckPending]:
        """The reports, with a failure instead of each success whose result does not match."""
        checking = await self._types.checking()
        if not checking:
            return reports
        ended = [report for report in reports if report.kind is ReportKind.SUCCEEDED]
        runs = [_run(report) for report in ended if report.key[0] in checking]
        schemas = await self._texts(runs)
        if not schemas:
            return reports
        return [self._checked(report, schemas) for report in reports]

    async def check_result(self, key: Key, result: task_pb2.TaskResult) -> RunError | None:
        """The error of the result of an external task; None if it matches."""
        if key[0] not in await self._types.checking():
            return None
        schemas = await self._texts([(*key, 0)])
        text = schemas.get((*key, 0))
        if text is None:
            return None
        return _error(await self._schemas.check(key[0], text, _output(result), PATH))

    async def close(self) -> None:
        """End the checks in the background; their reports are sent again to another replica."""
        await end_tasks(list(self._pending.values()))

    async def _texts(self, runs: Sequence[Run]) -> Mapping[Run, bytes]:
        if not runs:
            return {}
        async with self._pool.reading() as tx:
            revisions = await task_types.revisions_of_runs(tx, runs)
        texts = await self._types.result_schemas(revisions.values())
        found = {run: texts[revision] for run, revision in revisions.items()}
        return {run: text for run, text in found.items() if text}

    def _checked(self, report: Report, schemas: Mapping[Run, bytes]) -> Report | ResultCheckPending:
        text = schemas.get(_run(report)) if report.kind is ReportKind.SUCCEEDED else None
        if text is None:
            return report
        found = self._violations(report, text)
        if found is None:
            return ResultCheckPending(task_name(*report.key), retry_after=RETRY_AFTER)
        error = _error(found)
        return report if error is None else _failure(report, error)

    def _violations(self, report: Report, text: bytes) -> Violations | None:
        """The violations in the result of a run; None while they are being looked for."""
        result = task_pb2.TaskResult.FromString(report.result or b"")
        # The same result may come encoded in another order: as a column first, and as a report then.
        digest = hashlib.sha256(result.SerializeToString(deterministic=True)).digest()
        key = (_run(report), report.lease_id, digest)
        pending = self._pending.get(key)
        if pending is None:
            output = _output(result)
            found = self._schemas.check_now(report.key[0], text, output, PATH)
            if found is not None:
                return found
            self._start(key, text, output)
            return None
        if not pending.done():
            return None
        del self._pending[key]
        if pending.cancelled() or pending.exception() is not None:
            # Overloaded or draining: the next report starts it again.
            return None
        return pending.result()

    def _start(self, key: _Pending, text: bytes, output: common_pb2.Payload | None) -> None:
        if len(self._pending) >= MAX_PENDING:
            oldest = next((key for key, task in self._pending.items() if task.done()), None)
            if oldest is None:
                return
            del self._pending[oldest]
        tenant_id = key[0][0]
        self._pending[key] = asyncio.create_task(self._schemas.check(tenant_id, text, output, PATH))


def _run(report: Report) -> Run:
    return (*report.key, report.generation)


def _failure(report: Report, error: RunError) -> Report:
    failed = Failed(
        actor=runner(report.runner_id),
        runner_id=report.runner_id,
        generation=report.generation,
        lease_id=report.lease_id,
        time=report.time,
        error=error,
        exit_code=report.exit_code,
    )
    return report._replace(kind=ReportKind.OTHER, result=None, exit_code=None, other=failed)


def _output(result: task_pb2.TaskResult) -> common_pb2.Payload | None:
    return result.output if result.HasField("output") else None


def _error(found: Violations) -> RunError | None:
    if not found:
        return None
    problems = "; ".join(f"{finding.field}: {finding.description}" for finding in found[:MAX_REPORTED])
    return RunError(
        CODE, ErrorClass.PERMANENT, f"the result does not match the schema of its type: {problems}"
    )
