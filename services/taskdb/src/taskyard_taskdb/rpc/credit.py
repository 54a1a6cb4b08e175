"""LeaseService.KeepCredit: schedulers keep places with this replica and get what was leased on them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from taskyard.errors import TaskyardError
from taskyard.v1 import lease_service_pb2
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.credit import CreditBook, CreditLine, Grant, Terms
from taskyard_taskdb.rpc.claim import ClaimHandler, release_unsent
from taskyard_taskdb.rpc.reports import ReportBatch
from taskyard_taskdb.rpc.times import to_timedelta
from taskyard_taskdb.storage.claim.claims import ClaimedTask, ClaimResult
from taskyard_taskdb.storage.report.reports import Report

Request = lease_service_pb2.KeepCreditRequest
Response = lease_service_pb2.KeepCreditResponse
Granted = tuple[Grant, ClaimedTask]

log = get_log(__name__)


class CreditHandler:
    """LeaseService.KeepCredit. The credit of a stream ends with it, and with `draining`."""

    def __init__(
        self, book: CreditBook, claims: ClaimHandler, reports: ReportBatch, draining: asyncio.Event
    ) -> None:
        self._book = book
        self._claims = claims
        self._reports = reports
        self._draining = draining
        self._background: set[asyncio.Task[None]] = set()

    async def KeepCredit(self, requests: AsyncIterator[Request], context: Any) -> AsyncIterator[Response]:
        """Stream uses of credit until the caller ends or the server drains."""
        uses = _Uses(self._release)
        reading = asyncio.create_task(self._read(requests, uses))
        draining = asyncio.create_task(self._draining.wait())
        for ends in (reading, draining):
            ends.add_done_callback(lambda _: uses.end())
        try:
            while (taken := await uses.take()) is not None:
                yield await self._response(*taken)
            if reading.done() and not reading.cancelled():
                reading.result()
        finally:
            reading.cancel()
            draining.cancel()
            uses.close()

    async def _read(self, requests: AsyncIterator[Request], uses: _Uses) -> None:
        async for request in requests:
            if uses.line is None:
                uses.line = self._book.open(request.scheduler_id, uses)
            apply_credit(uses.line, request)

    async def _response(self, granted: list[Granted], settled: list[str]) -> Response:
        try:
            return await self._filled(granted, settled)
        except BaseException:
            if granted:
                self._release(granted)
            raise

    async def _filled(self, granted: list[Granted], settled: list[str]) -> Response:
        response = Response(settled=settled)
        for (runner_id, epoch, heartbeat_id), tasks in _by_runner(granted).items():
            message = response.granted.add(
                runner_id=runner_id, session_epoch=epoch, heartbeat_id=heartbeat_id
            )
            assignments = await self._claims.assignments(runner_id, ClaimResult(tasks=tasks))
            message.assignments.extend(assignments)
        return response

    def _release(self, unsent: list[Granted]) -> None:
        """Release leases that were not sent: nobody will start them."""
        log.info("eager_leases_unsent", count=len(unsent))
        reports = [release_unsent(task, grant.terms.runner_id) for grant, task in unsent]
        releasing = asyncio.create_task(self._apply_releases(reports))
        self._background.add(releasing)
        releasing.add_done_callback(self._background.discard)

    async def _apply_releases(self, reports: list[Report]) -> None:
        try:
            await self._reports.apply(reports)
        except TaskyardError as error:
            # The first leases end by themselves.
            log.info("eager_leases_left_to_expire", count=len(reports), error=str(error))


class _Uses:
    """The uses of one scheduler's credit that have to be sent, in order."""

    def __init__(self, release: Callable[[list[Granted]], None]) -> None:
        self.line: CreditLine | None = None
        self._release = release
        self._closed = False
        self._granted: list[Granted] = []
        self._settled: list[str] = []
        self._ended = False
        self._changed = asyncio.Event()

    def granted(self, grant: Grant, task: object) -> None:
        assert isinstance(task, ClaimedTask)
        if self._closed:
            # The create was under way when the stream ended.
            self._release([(grant, task)])
            return
        self._granted.append((grant, task))
        self._changed.set()

    def settled(self, runner_id: str) -> None:
        self._settled.append(runner_id)
        self._changed.set()

    def end(self) -> None:
        """Send no more."""
        self._ended = True
        self._changed.set()

    async def take(self) -> tuple[list[Granted], list[str]] | None:
        """What has to be sent, after waiting for it; None at the end."""
        await self._changed.wait()
        self._changed.clear()
        if self._ended:
            return None
        taken = self._granted, self._settled
        self._granted, self._settled = [], []
        return taken

    def close(self) -> None:
        """The stream has ended: its credit too, and what was not sent is released."""
        self._closed = True
        if self.line is not None:
            self.line.close()
        if self._granted:
            self._release(self._granted)


def apply_credit(line: CreditLine, request: Request) -> None:
    """Change the credit of a scheduler as it asks."""
    # What is withdrawn, or belongs to a session that has ended, must not be valid with the new position.
    for credit in request.runners:
        if credit.withdrawn:
            line.withdraw(credit.runner_id)
        else:
            line.give(_terms(credit), credit.places)
    position = request.position
    line.consider(position.replica_id, position.number, to_timedelta(request.valid_for).total_seconds())


def _terms(credit: lease_service_pb2.RunnerCredit) -> Terms:
    return Terms(
        runner_id=credit.runner_id,
        session_epoch=credit.session_epoch,
        heartbeat_id=credit.heartbeat_id,
        valid_for=to_timedelta(credit.valid_for).total_seconds(),
        lease_duration=to_timedelta(credit.lease_duration),
        class_ids=frozenset(credit.class_ids),
        tenants=frozenset(credit.tenants),
    )


def _by_runner(granted: list[Granted]) -> dict[tuple[str, int, int], list[ClaimedTask]]:
    """The tasks by runner, session and heartbeat."""
    found: dict[tuple[str, int, int], list[ClaimedTask]] = {}
    for grant, task in granted:
        terms = grant.terms
        found.setdefault((terms.runner_id, terms.session_epoch, terms.heartbeat_id), []).append(task)
    return found
