"""The connection of a client: its server, its tenant, and how long it waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from taskyard.channels import Channels
from taskyard.context import Context, find_context, patience_seconds
from taskyard.convert import Seconds, to_timedelta
from taskyard.names import task_name, tenant_name
from taskyard.task import Task
from taskyard.v1.task_service_pb2_grpc import TaskServiceStub

if TYPE_CHECKING:
    from taskyard.v1.api_key_service_pb2 import WhoAmIResponse

    # Exists for type checkers only: a generated module has one stub class for sync and async code.
    from taskyard.v1.task_service_pb2_grpc import TaskServiceAsyncStub


class Connected:
    """What every part of a client shares; an async context manager."""

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
        given = {
            "address": address,
            "key": key,
            "tenant": tenant,
            "scheduler": scheduler,
            "admin_key": admin_key,
            "tls_ca": str(tls_ca) if tls_ca else None,
        }
        self._outage_timeout = to_timedelta(outage_timeout).total_seconds()
        limit = None if timeout is None else to_timedelta(timeout).total_seconds()
        wait = None if patience is None else to_timedelta(patience).total_seconds()
        self._channels = Channels(find_context(given, name=context), limit, patience_seconds(wait))

    @property
    def context(self) -> Context:
        """The server it uses; the tenant is empty until the first call has asked for that of the key.

        Example:
            print(client.context.address)
        """
        return self._channels.context

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection and cancels the calls in flight.

        Example:
            other = Client()
            await other.close()
        """
        await self._channels.close()

    async def health(self) -> Mapping[str, bool]:
        """Whether each configured service reports SERVING; False for one that cannot be reached.

        Example:
            assert (await client.health())["taskdb"]
        """
        addresses = {"taskdb": self.context.address, "scheduler": self.context.scheduler}
        return {name: await self._channels.serves(address) for name, address in addresses.items() if address}

    async def server_state(self, address: str) -> str:
        """The state of the server at an address: "serving", "not serving" or "not reachable".

        Example:
            assert await client.server_state(client.context.address) == "serving"
        """
        return await self._channels.state(address)

    async def whoami(self) -> WhoAmIResponse:
        """The key of this client as the server has it, and the version of the server.

        Example:
            me = await client.whoami()
            print(me.api_key.name, me.api_key.tenant, me.server_version)
        """
        return await self._channels.who_am_i()

    async def tenant(self) -> str:
        """The tenant of this client: the configured one, or that of its key.

        Example:
            print(await client.tenant())
        """
        return await self._channels.tenant()

    # Calling

    @property
    def _tasks(self) -> TaskServiceAsyncStub:
        return self._channels.stub("taskdb", TaskServiceStub)

    async def _parent(self, tenant: str = "") -> str:
        return tenant_name(tenant or await self._channels.tenant())

    async def _name(self, task: str | Task) -> str:
        if isinstance(task, Task):
            return task.name
        return task if task.startswith("tenants/") else task_name(await self._channels.tenant(), task)
