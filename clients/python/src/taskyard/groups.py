"""Groups of a tenant: tasks that are counted, waited for and cancelled together.

Methods return the proto messages of taskyard.v1, which document each field.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING

from taskyard import errors
from taskyard.channels import Channels, deferred
from taskyard.convert import Seconds, to_duration, to_timedelta
from taskyard.names import group_name, new_request_id, tenant_name
from taskyard.pages import pages
from taskyard.retry_timer import RetryTimer
from taskyard.stream import Stream
from taskyard.v1 import group_pb2
from taskyard.v1 import group_service_pb2 as pb
from taskyard.v1.group_service_pb2_grpc import GroupServiceStub

if TYPE_CHECKING:
    from taskyard.v1.group_service_pb2_grpc import GroupServiceAsyncStub

PAGE_SIZE = 1000
# The longest wait of one call before it is repeated, and the time for its response beyond that.
WAIT_SECONDS = 60.0
RESPONSE_SECONDS = 10.0


class Groups:
    """The groups of a Client's tenant. A group is given as its id or its full name."""

    def __init__(self, channels: Channels, outage_timeout: float) -> None:
        self._channels = channels
        self._outage_timeout = outage_timeout

    async def create(
        self, group_id: str, *, callback: str = "", callback_headers: Mapping[str, str] | None = None
    ) -> group_pb2.Group:
        """Creates an empty group, to give it a webhook; the first task of a group creates one as well.

        Example:
            group = await client.groups.create("nightly")
            await client.create(command("true", group="nightly"))
        """
        made = group_pb2.Group()
        if callback:
            made.callback.url = callback
            made.callback.headers.update(callback_headers or {})
        request = pb.CreateGroupRequest(
            parent=tenant_name(await self._channels.tenant()),
            group_id=group_id,
            group=made,
            request_id=new_request_id(),
        )
        return (await self._channels.call(self._stub.CreateGroup, request)).group

    async def get(self, group: str) -> group_pb2.Group:
        """The group with its counts.

        Example:
            nightly = await client.groups.get("nightly")
            print(nightly.live_count, nightly.succeeded_count, nightly.not_succeeded_count)
        """
        request = pb.GetGroupRequest(name=await self._name(group))
        return (await self._channels.call(self._stub.GetGroup, request)).group

    def list(self, filter: str = "", *, tenant: str = "") -> Stream[group_pb2.Group]:
        """The groups of a tenant, by id; the filter may name id, state and create_time.

        Example:
            print([group.name async for group in client.groups.list("state = OPEN")])
        """

        async def first() -> AsyncGenerator[Sequence[group_pb2.Group]]:
            request = pb.ListGroupsRequest(
                parent=tenant_name(tenant or await self._channels.tenant()),
                filter=filter,
                page_size=PAGE_SIZE,
            )
            return pages(self._channels, lambda: self._stub.ListGroups, request, "groups", _identity)

        return Stream(deferred(first))

    async def close(self, group: str) -> group_pb2.Group:
        """Closes a group: no more tasks may join it, and it is complete once all of them have ended.

        Example:
            await client.groups.close("nightly")
        """
        request = pb.CloseGroupRequest(name=await self._name(group))
        return (await self._channels.call(self._stub.CloseGroup, request)).group

    async def cancel(self, group: str, reason: str = "") -> group_pb2.Group:
        """Closes a group and cancels its live tasks, which end a little later.

        Example:
            await client.groups.cancel("nightly", "the data was wrong")
        """
        request = pb.CancelGroupRequest(name=await self._name(group), reason=reason)
        return (await self._channels.call(self._stub.CancelGroup, request)).group

    async def wait(self, group: str, *, timeout: Seconds | None = None) -> group_pb2.Group:
        """Returns the group once it is complete; raises TimeoutError after `timeout`. Retries over outages.

        Example:
            nightly = await client.groups.wait("nightly", timeout=60)
            print(nightly.succeeded_count, nightly.not_succeeded_count)
        """
        name = await self._name(group)
        ends = None if timeout is None else time.monotonic() + to_timedelta(timeout).total_seconds()
        retry_timer = RetryTimer(self._outage_timeout)
        while True:
            left = WAIT_SECONDS if ends is None else max(0.0, min(WAIT_SECONDS, ends - time.monotonic()))
            request = pb.WaitGroupRequest(name=name, timeout=to_duration(left))
            try:
                response = await self._channels.call(
                    self._stub.WaitGroup, request, left + RESPONSE_SECONDS, waits_out=False
                )
            except errors.TaskyardError as error:
                if ends is not None and time.monotonic() >= ends:
                    raise
                await retry_timer.wait(error)
                continue
            retry_timer.refresh()
            if response.satisfied:
                return response.group
            if ends is not None and time.monotonic() >= ends:
                waited = f"{to_timedelta(timeout or 0).total_seconds():g} s"
                found = response.group
                state = group_pb2.GroupState.Name(found.state).removeprefix("GROUP_STATE_")
                raise TimeoutError(f"{name} is {state} with {found.live_count} live tasks after {waited}")

    async def delete(self, group: str) -> None:
        """Deletes a group without live tasks; its tasks stay.

        Example:
            await client.groups.delete("nightly")
        """
        request = pb.DeleteGroupRequest(name=await self._name(group))
        await self._channels.call(self._stub.DeleteGroup, request)

    async def _name(self, group: str) -> str:
        return group_name(await self._channels.tenant(), group)

    @property
    def _stub(self) -> GroupServiceAsyncStub:
        return self._channels.stub("taskdb", GroupServiceStub)


def _identity(found: group_pb2.Group) -> group_pb2.Group:
    return found
