"""Results of tasks checked against the schema of their type: a success that does not match is a failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

from taskyard.errors import FieldViolation
from taskyard.v1 import task_pb2
from taskyard_taskdb.domain.event import Failed, runner
from taskyard_taskdb.domain.task import RunError
from taskyard_taskdb.domain.words import ErrorClass
from taskyard_taskdb.rpc import json_schema
from taskyard_taskdb.rpc.json_schema import PayloadSchema
from taskyard_taskdb.rpc.type_cache import TypeCache
from taskyard_taskdb.storage.pool import Pool
from taskyard_taskdb.storage.report.reports import Report, ReportKind
from taskyard_taskdb.storage.tenant import task_types
from taskyard_taskdb.storage.transition.task_rows import Key

CODE = "RESULT_SCHEMA_VIOLATION"
# Violations that the error message lists.
MAX_REPORTED = 5

Run = tuple[str, str, int]
"""Tenant, task and generation."""


class ResultChecks:
    """Checks results. Costs nothing if no type has a result schema, else one read per batch of successes."""

    def __init__(self, pool: Pool, types: TypeCache) -> None:
        self._pool = pool
        self._types = types

    async def checked(self, reports: Sequence[Report]) -> Sequence[Report]:
        """The reports, with a failure instead of each success whose result does not match."""
        checking = await self._types.checking()
        if not checking:
            return reports
        ended = [report for report in reports if report.kind is ReportKind.SUCCEEDED]
        runs = [_run(report) for report in ended if report.key[0] in checking]
        schemas = await self._schemas(runs)
        if not schemas:
            return reports
        return await asyncio.to_thread(_checked_all, reports, schemas)

    async def check_result(self, key: Key, result: task_pb2.TaskResult) -> RunError | None:
        """The error of the result of an external task; None if it matches."""
        if key[0] not in await self._types.checking():
            return None
        schemas = await self._schemas([(*key, 0)])
        schema = schemas.get((*key, 0))
        return None if schema is None else await asyncio.to_thread(_error, schema, result)

    async def _schemas(self, runs: Sequence[Run]) -> Mapping[Run, PayloadSchema]:
        if not runs:
            return {}
        async with self._pool.reading() as tx:
            revisions = await task_types.revisions_of_runs(tx, runs)
        schemas = await self._types.result_schemas(revisions.values())
        found = {run: schemas[revision] for run, revision in revisions.items()}
        return {run: schema for run, schema in found.items() if schema is not None}


def _run(report: Report) -> Run:
    return (*report.key, report.generation)


def _checked_all(reports: Sequence[Report], schemas: Mapping[Run, PayloadSchema]) -> list[Report]:
    return [_checked(report, schemas) for report in reports]


def _checked(report: Report, schemas: Mapping[Run, PayloadSchema]) -> Report:
    schema = schemas.get(_run(report)) if report.kind is ReportKind.SUCCEEDED else None
    if schema is None:
        return report
    error = _error(schema, task_pb2.TaskResult.FromString(report.result or b""))
    if error is None:
        return report
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


def _error(schema: PayloadSchema, result: task_pb2.TaskResult) -> RunError | None:
    output = result.output if result.HasField("output") else None
    try:
        found = json_schema.check(schema, output, "result.output")
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        found = (FieldViolation("result.output.raw", f"is not JSON: {error}"[:200], "json_schema"),)
    if not found:
        return None
    problems = "; ".join(f"{finding.field}: {finding.description}" for finding in found[:MAX_REPORTED])
    return RunError(
        CODE, ErrorClass.PERMANENT, f"the result does not match the schema of its type: {problems}"
    )
