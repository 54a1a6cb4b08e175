"""Named limits of a tenant, which tasks name in their option `limits`.

Methods return the proto messages of taskyard.v1, which document each field.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING

from google.protobuf.field_mask_pb2 import FieldMask

from taskyard.channels import Channels, deferred
from taskyard.convert import Seconds, to_duration
from taskyard.names import limit_name, tenant_name
from taskyard.pages import pages
from taskyard.stream import Stream
from taskyard.v1 import limit_pb2
from taskyard.v1 import limit_service_pb2 as pb
from taskyard.v1.limit_service_pb2_grpc import LimitServiceStub

if TYPE_CHECKING:
    from taskyard.v1.limit_service_pb2_grpc import LimitServiceAsyncStub

PAGE_SIZE = 1000

Rate = tuple[int, Seconds]
"""How many starts, and within which duration."""


def new_limit(
    *,
    max_running: int = 0,
    max_running_per_key: int = 0,
    starts: Rate | None = None,
    starts_per_key: Rate | None = None,
    description: str = "",
) -> limit_pb2.Limit:
    """The message of a limit."""
    made = limit_pb2.Limit(
        max_running=max_running, max_running_per_key=max_running_per_key, description=description
    )
    for field, rate in ((made.starts, starts), (made.starts_per_key, starts_per_key)):
        if rate is not None:
            field.count = rate[0]
            field.per.CopyFrom(to_duration(rate[1]))
    return made


class Limits:
    """The limits of a Client's tenant. A limit is given as its id or its full name."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def create(
        self,
        limit_id: str,
        *,
        max_running: int = 0,
        max_running_per_key: int = 0,
        starts: Rate | None = None,
        starts_per_key: Rate | None = None,
        description: str = "",
        validate_only: bool = False,
    ) -> limit_pb2.Limit:
        """Creates a limit of at least one bound; rates are pairs of a count and a duration.

        Example:
            await client.limits.create("api", max_running_per_key=2, starts=(100, timedelta(minutes=1)))
        """
        limit = new_limit(
            max_running=max_running,
            max_running_per_key=max_running_per_key,
            starts=starts,
            starts_per_key=starts_per_key,
            description=description,
        )
        request = pb.CreateLimitRequest(
            parent=tenant_name(await self._channels.tenant()),
            limit_id=limit_id,
            limit=limit,
            validate_only=validate_only,
        )
        return (await self._channels.call(self._stub.CreateLimit, request)).limit

    async def get(self, limit: str) -> limit_pb2.Limit:
        """Returns a limit, with the units that are held and the number of tasks that wait.

        Example:
            print((await client.limits.get("api")).waiting_count)
        """
        request = pb.GetLimitRequest(name=await self._name(limit))
        return (await self._channels.call(self._stub.GetLimit, request)).limit

    def list(self, *, tenant: str = "") -> Stream[limit_pb2.Limit]:
        """The limits of a tenant, by id.

        Example:
            print([limit.name async for limit in client.limits.list()])
        """

        async def first() -> AsyncGenerator[Sequence[limit_pb2.Limit]]:
            request = pb.ListLimitsRequest(
                parent=tenant_name(tenant or await self._channels.tenant()), page_size=PAGE_SIZE
            )
            return pages(self._channels, lambda: self._stub.ListLimits, request, "limits", _identity)

        return Stream(deferred(first))

    async def put(self, limit: limit_pb2.Limit, *paths: str, validate_only: bool = False) -> limit_pb2.Limit:
        """Creates or changes a limit: the fields named by `paths`, or every field that is set.

        Example:
            limit = await client.limits.get("api")
            limit.max_running_per_key = 4
            await client.limits.put(limit, "max_running_per_key")
        """
        request = pb.UpdateLimitRequest(
            limit=limit,
            update_mask=FieldMask(paths=paths),
            allow_missing=True,
            validate_only=validate_only,
        )
        request.limit.name = await self._name(limit.name)
        return (await self._channels.call(self._stub.UpdateLimit, request)).limit

    async def delete(self, limit: str) -> None:
        """Deletes a limit; what waits for it is admitted.

        Example:
            await client.limits.delete("api")
        """
        request = pb.DeleteLimitRequest(name=await self._name(limit))
        await self._channels.call(self._stub.DeleteLimit, request)

    @property
    def _stub(self) -> LimitServiceAsyncStub:
        return self._channels.stub("taskdb", LimitServiceStub)

    async def _name(self, limit: str) -> str:
        return limit_name(await self._channels.tenant(), limit)


def _identity(limit: limit_pb2.Limit) -> limit_pb2.Limit:
    return limit
