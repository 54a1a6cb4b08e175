"""Tasks that running tasks create: by the holder of the lease, as the parent's tenant, once per key."""

import pytest

from services.taskdb.tests.child_calls import child, create
from services.taskdb.tests.yard import Runner, Yard, started, succeeded
from taskyard.errors import FieldInvalid, LeaseNotHeld, StaleGeneration
from taskyard.v1 import lease_pb2


async def claimed(yard: Yard) -> tuple[Runner, lease_pb2.Assignment]:
    await yard.create()
    runner, _ = await yard.hello()
    return runner, (await yard.claim(runner)).assignments[0]


async def test_a_child_belongs_to_its_parent_and_its_tenant(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    # Tenant and parent in the request for the child are ignored.
    (name,) = await create(
        yard, runner.id, parent.lease, child(parent_task="tenants/default/tasks/other", id="mine")
    )
    task = await yard.task(name)
    assert name.startswith("tenants/default/tasks/") and not name.endswith("/mine")
    assert task.metadata.parent_task == parent.lease.task
    assert dict(task.metadata.labels) == {"of": "parent"}
    assert task.metadata.creator.id == runner.id


async def test_a_key_names_one_child_across_repetitions_and_runs(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    first = await create(yard, runner.id, parent.lease, child("a"), child("b"))
    assert await create(yard, runner.id, parent.lease, child("a"), child("b")) == first
    assert len(set(first)) == 2


async def test_children_are_created_all_or_none(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    with pytest.raises(FieldInvalid) as refused:
        await create(yard, runner.id, parent.lease, child("a"), child("b", program=""))
    assert "requests[1]" in str(refused.value)
    (only,) = await create(yard, runner.id, parent.lease, child("a"))
    assert (await yard.task(only)).metadata.parent_task == parent.lease.task


@pytest.mark.covers("CreateChildTasks", "LEASE_NOT_HELD")
async def test_only_the_holder_creates_children(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    with pytest.raises(LeaseNotHeld):
        await create(yard, "another", parent.lease, child())
    await yard.report(runner, started(parent), succeeded(parent))
    with pytest.raises(LeaseNotHeld):
        await create(yard, runner.id, parent.lease, child())


@pytest.mark.covers("CreateChildTasks", "STALE_GENERATION")
async def test_a_forged_lease_creates_nothing(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    forged = lease_pb2.LeaseRef()
    forged.CopyFrom(parent.lease)
    forged.lease_id += 1
    with pytest.raises(StaleGeneration):
        await create(yard, runner.id, forged, child())


@pytest.mark.covers("CreateChildTasks", "FIELD_INVALID")
async def test_bad_requests_name_the_field(yard: Yard) -> None:
    runner, parent = await claimed(yard)
    for children, field in (((), "children"), ((child(""),), "children[0].key")):
        with pytest.raises(FieldInvalid) as refused:
            await create(yard, runner.id, parent.lease, *children)
        assert field in str(refused.value)
