"""SessionService: sessions of runners, and the verification of keys for schedulers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from taskyard.errors import FieldInvalid, TaskyardError, Unauthenticated
from taskyard.v1 import session_service_pb2
from taskyard_kit.keys import ApiKey
from taskyard_kit.logs import get_log
from taskyard_taskdb.domain.event import ProgressReported, runner
from taskyard_taskdb.domain.names import task_name
from taskyard_taskdb.rpc.api_keys import fill_key
from taskyard_taskdb.rpc.convert import fill_runner, fill_verdict, read_lease, read_leases, read_registration
from taskyard_taskdb.rpc.reports import ReportBatch
from taskyard_taskdb.rpc.runner_rules import RunnerRules
from taskyard_taskdb.rpc.times import set_duration, to_datetime, to_timedelta
from taskyard_taskdb.storage.lease import renewals, sessions
from taskyard_taskdb.storage.lease.lease import LeaseVerdict
from taskyard_taskdb.storage.lease.renewals import Renewed, Return, SessionHeartbeat
from taskyard_taskdb.storage.lease.sessions import Hello, Opened
from taskyard_taskdb.storage.notify.bus import Bus, CommitNotice
from taskyard_taskdb.storage.pool import Pool, Tx
from taskyard_taskdb.storage.report.reports import Report, ReportKind
from taskyard_taskdb.storage.runner import runners, workers
from taskyard_taskdb.storage.runner.workers import Worker
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.watch.hub import Hub

log = get_log(__name__)

SESSION_LEASE = timedelta(seconds=30)
KEY_TTL = timedelta(seconds=5)
MAX_SESSIONS = 1000


class SessionHandler:
    """SessionService. Heartbeats use reserved connections, so that they never queue behind other calls."""

    def __init__(self, pool: Pool, bus: Bus, hub: Hub, reports: ReportBatch) -> None:
        self._pool = pool
        self._bus = bus
        self._hub = hub
        self._reports = reports
        self._background: set[asyncio.Task[None]] = set()

    async def OpenSession(
        self, request: session_service_pb2.OpenSessionRequest, context: Any
    ) -> session_service_pb2.OpenSessionResponse:
        """Open a session and return a verdict for each lease that the runner no longer holds."""
        opening = _session_request(request)

        async def work(tx: Tx) -> tuple[Opened, runners.RunnerRecord, dict[tuple[str, str], str]]:
            opened = await sessions.open_session(tx, opening)
            types = await runners.held_task_types(tx, opening.runner_id) if opening.held else {}
            return opened, (await runners.read(tx, [opening.runner_id]))[0], types

        opened, record, types = await self._pool.run(work)
        self._bus.publish(opened.notice)
        self._hub.wake()
        response = session_service_pb2.OpenSessionResponse(
            session_id=str(opened.session_id), session_epoch=opened.epoch
        )
        fill_runner(response.runner, record)
        for verdict in opened.verdicts:
            fill_verdict(response.verdicts.add(), verdict)
        for key, task_type in types.items():
            response.held_task_types[task_name(*key)] = task_type
        return response

    async def RenewSessions(
        self, request: session_service_pb2.RenewSessionsRequest, context: Any
    ) -> session_service_pb2.RenewSessionsResponse:
        """Renew sessions in one statement; leases in doubt are examined one by one."""
        requested = _renewals(request)
        single = not any(renewal.listed or renewal.dropped for renewal in requested)
        results = await self._pool.run(
            lambda tx: renewals.renew_sessions(tx, requested), reserve=True, single=single
        )
        await self._register(request, results)
        verdicts = await self._verdicts(requested, results)
        self._store_progress(request, results)
        response = session_service_pb2.RenewSessionsResponse()
        for result in results:
            message = response.results.add(lost=result.lost)
            for verdict in result.verdicts:
                fill_verdict(message.verdicts.add(), verdict)
            for lease in result.doubtful:
                if lease in verdicts:
                    fill_verdict(message.verdicts.add(), verdicts[lease])
        return response

    async def _verdicts(
        self, requested: Sequence[SessionHeartbeat], results: Sequence[Renewed]
    ) -> dict[Any, LeaseVerdict]:
        returns = [
            Return(lease, renewal.runner_id, renewal.epoch, renewal.lease_duration)
            for renewal, result in zip(requested, results, strict=True)
            for lease in result.doubtful
        ]
        if not returns:
            return {}
        verdicts, notice = await self._pool.run(lambda tx: renewals.return_leases(tx, returns), reserve=True)
        self._bus.publish(notice)
        self._hub.wake()
        return dict(verdicts)

    async def _register(
        self, request: session_service_pb2.RenewSessionsRequest, results: Sequence[Renewed]
    ) -> None:
        changed = {
            renewal.runner_id: read_registration(renewal.registration)
            for renewal, result in zip(request.sessions, results, strict=True)
            if renewal.HasField("registration") and not result.lost
        }
        if changed:
            await self._pool.run(lambda tx: runners.register(tx, changed))
            self._bus.publish(CommitNotice(runners=set(changed)))

    def _store_progress(
        self, request: session_service_pb2.RenewSessionsRequest, results: Sequence[Renewed]
    ) -> None:
        """Store progress in the background, so that the heartbeat does not wait; only the newest matters."""
        reports = [
            _progress(renewal.runner_id, item, f"sessions[{n}].progress[{m}]")
            for n, (renewal, result) in enumerate(zip(request.sessions, results, strict=True))
            if not result.lost
            for m, item in enumerate(renewal.progress)
        ]
        if reports:
            task = asyncio.create_task(self._apply(reports))
            self._background.add(task)
            task.add_done_callback(self._background.discard)

    async def _apply(self, reports: list[Report]) -> None:
        try:
            await self._reports.apply(reports)
        except TaskyardError as error:
            log.warning("progress_not_stored", reports=len(reports), error=str(error))

    async def CloseSession(
        self, request: session_service_pb2.CloseSessionRequest, context: Any
    ) -> session_service_pb2.CloseSessionResponse:
        """Close a session, or record that its stream broke."""
        if request.disconnected:
            await self._pool.run(
                lambda tx: sessions.disconnect(tx, request.runner_id, request.session_epoch), reserve=True
            )
            self._bus.publish(CommitNotice(changed=True))
            return session_service_pb2.CloseSessionResponse()
        notice = await self._pool.run(
            lambda tx: sessions.close_session(
                tx, request.runner_id, request.session_epoch, release=request.release
            )
        )
        self._bus.publish(notice)
        self._hub.wake()
        return session_service_pb2.CloseSessionResponse()

    async def RegisterWorker(
        self, request: session_service_pb2.RegisterWorkerRequest, context: Any
    ) -> session_service_pb2.RegisterWorkerResponse:
        """List a pull worker as a runner, or renew that."""
        worker = Worker(
            request.scheduler_id,
            request.worker_id,
            request.key_id,
            read_registration(request.registration) if request.HasField("registration") else None,
            to_timedelta(request.duration),
            RunnerRules(
                request.worker_id, request.registration if request.HasField("registration") else None
            ).check,
        )

        async def work(tx: Tx) -> tuple[bool, list[runners.RunnerRecord]]:
            return await workers.register(tx, worker), await runners.read(tx, [worker.worker_id])

        appeared, found = await self._pool.run(work)
        if appeared:
            self._bus.publish(CommitNotice(changed=True))
            self._hub.wake()
        response = session_service_pb2.RegisterWorkerResponse()
        for record in found:
            fill_runner(response.runner, record)
        return response

    async def VerifyApiKey(
        self, request: session_service_pb2.VerifyApiKeyRequest, context: Any
    ) -> session_service_pb2.VerifyApiKeyResponse:
        """Return the principal of a key. Raises Unauthenticated for a key that is not valid."""
        try:
            presented = ApiKey.parse(request.key)
        except ValueError as error:
            raise Unauthenticated(str(error)) from None
        async with self._pool.reading() as tx:
            found = await api_keys.find_key(tx, presented.id)
        if found is None or not presented.matches(found.secret_hash):
            raise Unauthenticated("the key is unknown, expired or revoked")
        return _key_response(found)


def _session_request(request: session_service_pb2.OpenSessionRequest) -> Hello:
    duration = to_timedelta(request.lease_duration) if request.HasField("lease_duration") else SESSION_LEASE
    return Hello(
        scheduler_id=request.scheduler_id,
        runner_id=request.runner_id,
        key_id=request.key_id,
        instance_id=UUID(request.instance_id),
        takeover=request.takeover,
        registration=read_registration(request.registration),
        held=read_leases(request.held, "held"),
        lease_duration=duration,
        check=RunnerRules(request.runner_id, request.registration).check,
    )


def _renewals(request: session_service_pb2.RenewSessionsRequest) -> list[SessionHeartbeat]:
    if len(request.sessions) > MAX_SESSIONS:
        problem = f"must have at most {MAX_SESSIONS} items, not {len(request.sessions)}"
        raise FieldInvalid.of("sessions", problem)
    return [_renewal(message, f"sessions[{n}]") for n, message in enumerate(request.sessions)]


def _renewal(message: session_service_pb2.SessionRenewal, field: str) -> SessionHeartbeat:
    if not message.runner_id:
        raise FieldInvalid.of(f"{field}.runner_id", "must not be empty")
    if message.session_epoch < 1:
        raise FieldInvalid.of(f"{field}.session_epoch", f"must be 1 or more, not {message.session_epoch}")
    duration = to_timedelta(message.lease_duration) if message.HasField("lease_duration") else SESSION_LEASE
    if not timedelta(seconds=1) <= duration <= timedelta(hours=1):
        raise FieldInvalid.of(f"{field}.lease_duration", f"must be 1 s to 1 h, not {duration}")
    return SessionHeartbeat(
        runner_id=message.runner_id,
        epoch=message.session_epoch,
        lease_duration=duration,
        listed=read_leases(message.listed, f"{field}.listed"),
        dropped=read_leases(message.dropped, f"{field}.dropped"),
        used_capacity=message.used_capacity,
        free_resources=message.free_resources.SerializeToString()
        if message.HasField("free_resources")
        else None,
        draining=message.draining,
    )


def _progress(runner_id: str, item: session_service_pb2.LeaseProgress, field: str) -> Report:
    lease = read_lease(item.lease, f"{field}.lease")
    observed = item.progress.observe_time
    event = ProgressReported(
        actor=runner(runner_id),
        runner_id=runner_id,
        generation=lease.generation,
        lease_id=lease.lease_id,
        time=to_datetime(observed) if item.progress.HasField("observe_time") else None,
        progress=item.progress.SerializeToString(),
    )
    return Report(lease.key, runner_id, lease.generation, lease.lease_id, ReportKind.OTHER, other=event)


def _key_response(found: api_keys.StoredKey) -> session_service_pb2.VerifyApiKeyResponse:
    response = session_service_pb2.VerifyApiKeyResponse()
    fill_key(response.api_key, found)
    set_duration(response.ttl, KEY_TTL)
    return response
