"""The blocking client: every method of Client, for code without asyncio."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from taskyard.admin import Admin
from taskyard.client import Client
from taskyard.context import Context
from taskyard.convert import Seconds
from taskyard.groups import Groups
from taskyard.named_limits import Limits
from taskyard.schedules import Schedules
from taskyard.stream import Stream

P = ParamSpec("P")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)


class _Loop:
    """An event loop in a thread of its own, on which the one implementation runs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="taskyard-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            # Also on Ctrl-C: the call must not continue in the background.
            future.cancel()
            raise

    def iterate(self, stream: Stream[R]) -> Iterator[R]:
        # One hop between the threads per batch, not per item: a hop costs more than most items.
        try:
            while True:
                try:
                    batch = self.run(stream.batches.__anext__())
                except StopAsyncIteration:
                    return
                yield from batch
        finally:
            if self._thread.is_alive():
                self.run(stream.aclose())

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._thread.is_alive():
            self.run(last())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class _Waiting(Generic[T_co]):
    """A façade whose methods block until those of `_target` return."""

    _target: T_co
    _loop: _Loop


def _waiting(
    method: Callable[Concatenate[T_co, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[_Waiting[T_co], P], R]:
    @functools.wraps(method)
    def call(self: _Waiting[T_co], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._loop.run(method(self._target, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[T_co, P], Stream[R]],
) -> Callable[Concatenate[_Waiting[T_co], P], Iterator[R]]:
    @functools.wraps(method)
    def iterate(self: _Waiting[T_co], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        return self._loop.iterate(method(self._target, *args, **kwargs))

    return iterate


class SyncAdmin(_Waiting[Admin]):
    """Admin without await."""

    def __init__(self, target: Admin, loop: _Loop) -> None:
        self._target = target
        self._loop = loop

    create_tenant = _waiting(Admin.create_tenant)
    get_tenant = _waiting(Admin.get_tenant)
    tenants = _iterating(Admin.tenants)
    update_tenant = _waiting(Admin.update_tenant)
    delete_tenant = _waiting(Admin.delete_tenant)
    tenant_usage = _waiting(Admin.tenant_usage)
    create_key = _waiting(Admin.create_key)
    keys = _iterating(Admin.keys)
    create_sign_in_code = _waiting(Admin.create_sign_in_code)
    revoke_key = _waiting(Admin.revoke_key)
    get_type = _waiting(Admin.get_type)
    types = _iterating(Admin.types)
    put_type = _waiting(Admin.put_type)
    delete_type = _waiting(Admin.delete_type)
    validate_payload = _waiting(Admin.validate_payload)
    get_runner = _waiting(Admin.get_runner)
    runners = _iterating(Admin.runners)
    label_runner = _waiting(Admin.label_runner)
    drain = _waiting(Admin.drain)
    undrain = _waiting(Admin.undrain)
    delete_runner = _waiting(Admin.delete_runner)
    system_status = _waiting(Admin.system_status)
    doctor = _waiting(Admin.doctor)
    quarantines = _iterating(Admin.quarantines)
    release_quarantine = _waiting(Admin.release_quarantine)
    webhook_secret = _waiting(Admin.webhook_secret)
    webhook_deliveries = _iterating(Admin.webhook_deliveries)


class SyncLimits(_Waiting[Limits]):
    """Limits without await."""

    def __init__(self, target: Limits, loop: _Loop) -> None:
        self._target = target
        self._loop = loop

    create = _waiting(Limits.create)
    get = _waiting(Limits.get)
    list = _iterating(Limits.list)
    put = _waiting(Limits.put)
    delete = _waiting(Limits.delete)


class SyncSchedules(_Waiting[Schedules]):
    """Schedules without await."""

    def __init__(self, target: Schedules, loop: _Loop) -> None:
        self._target = target
        self._loop = loop

    create = _waiting(Schedules.create)
    get = _waiting(Schedules.get)
    list = _iterating(Schedules.list)
    put = _waiting(Schedules.put)
    pause = _waiting(Schedules.pause)
    resume = _waiting(Schedules.resume)
    run = _waiting(Schedules.run)
    backfill = _waiting(Schedules.backfill)
    preview = _waiting(Schedules.preview)
    delete = _waiting(Schedules.delete)


class SyncGroups(_Waiting[Groups]):
    """Groups without await."""

    def __init__(self, target: Groups, loop: _Loop) -> None:
        self._target = target
        self._loop = loop

    create = _waiting(Groups.create)
    get = _waiting(Groups.get)
    list = _iterating(Groups.list)
    close = _waiting(Groups.close)
    cancel = _waiting(Groups.cancel)
    wait = _waiting(Groups.wait)
    delete = _waiting(Groups.delete)


class SyncClient(_Waiting[Client]):
    """Client without await; safe to share between threads; a context manager.

    Its arguments are those of Client. It runs the one implementation on an event loop in a thread of its own,
    so it also works where a loop is running already. Streams are plain iterators.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        scheduler: str | None = None,
        admin_key: str | None = None,
        tls_ca: str | Path | None = None,
        context: str = "",
        timeout: Seconds | None = None,
        patience: Seconds | None = None,
        outage_timeout: Seconds = 300.0,
    ) -> None:
        self._target = Client(
            address,
            key=key,
            tenant=tenant,
            scheduler=scheduler,
            admin_key=admin_key,
            tls_ca=tls_ca,
            context=context,
            timeout=timeout,
            patience=patience,
            outage_timeout=outage_timeout,
        )
        self._loop = _Loop()

    @functools.cached_property
    def admin(self) -> SyncAdmin:
        """The administrator's API."""
        return SyncAdmin(self._target.admin, self._loop)

    @functools.cached_property
    def groups(self) -> SyncGroups:
        """Groups of tasks."""
        return SyncGroups(self._target.groups, self._loop)

    @functools.cached_property
    def limits(self) -> SyncLimits:
        """Named limits."""
        return SyncLimits(self._target.limits, self._loop)

    @functools.cached_property
    def schedules(self) -> SyncSchedules:
        """Schedules of tasks."""
        return SyncSchedules(self._target.schedules, self._loop)

    tenant = _waiting(Client.tenant)
    server_state = _waiting(Client.server_state)
    whoami = _waiting(Client.whoami)
    create = _waiting(Client.create)
    call = _waiting(Client.call)
    run_embedded = _waiting(Client.run_embedded)
    check = _waiting(Client.check)
    create_all = _waiting(Client.create_all)
    create_many = _iterating(Client.create_many)
    get = _waiting(Client.get)
    get_many = _iterating(Client.get_many)
    list = _iterating(Client.list)
    count = _waiting(Client.count)
    runs = _iterating(Client.runs)
    wait = _waiting(Client.wait)
    wait_all = _iterating(Client.wait_all)
    explain = _waiting(Client.explain)
    stats = _waiting(Client.stats)
    audit = _iterating(Client.audit)
    checkpoints = _iterating(Client.checkpoints)
    read_checkpoint = _waiting(Client.read_checkpoint)
    watch = _iterating(Client.watch)
    logs = _iterating(Client.logs)
    cancel = _waiting(Client.cancel)
    pause = _waiting(Client.pause)
    resume = _waiting(Client.resume)
    retry = _waiting(Client.retry)
    cancel_all = _iterating(Client.cancel_all)
    retry_all = _iterating(Client.retry_all)
    reset_all = _iterating(Client.reset_all)
    delete_all = _iterating(Client.delete_all)
    update = _waiting(Client.update)
    report = _waiting(Client.report)
    delete = _waiting(Client.delete)
    health = _waiting(Client.health)

    @property
    def context(self) -> Context:
        """The server it uses."""
        return self._target.context

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection and the thread; repeating it is safe."""
        self._loop.close(self._target.close)
