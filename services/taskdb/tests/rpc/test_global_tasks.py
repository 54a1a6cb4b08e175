"""GlobalTaskService: what the Global tasks DB does, member by member."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.preset_tasks import load
from taskyard import errors
from taskyard.compat.v1 import global_task_service_pb2 as pb
from taskyard.compat.v1.global_task_service_pb2_grpc import GlobalTaskServiceStub
from taskyard.errors import Code
from taskyard.v1 import common_pb2

MEMBERS = {
    "task_id",
    "task_data",
    "task_type",
    "task_update_timestamp",
    "task_create_timestamp",
    "task_status",
    "task_status_data",
}
SIX = [
    "vdag_creation",
    "block_alloc",
    "cluster_infra_creation",
    "cluster_infra_remove",
    "node_addition",
    "node_removal",
]


def struct(fields: dict[str, Any]) -> Struct:
    made = Struct()
    made.update(fields)
    return made


class Global:
    """The six calls, as the document has them, with JSON in and out."""

    def __init__(self, caller: Caller) -> None:
        self._stub = caller._stub(GlobalTaskServiceStub)

    async def create(self, metadata: Any = (), **members: Any) -> str:
        request = pb.CreateGlobalTaskRequest(**_structs(members))
        return str((await self._stub.CreateGlobalTask(request, metadata=metadata)).task_id)

    async def get(self, task_id: str, metadata: Any = ()) -> dict[str, Any]:
        request = pb.GetGlobalTaskRequest(task_id=task_id)
        return _json(await self._stub.GetGlobalTask(request, metadata=metadata))

    async def put(self, task_id: str, **members: Any) -> dict[str, Any]:
        request = pb.UpdateGlobalTaskRequest(task_id=task_id, **_structs(members))
        return _json(await self._stub.UpdateGlobalTask(request))

    async def delete(self, task_id: str) -> None:
        await self._stub.DeleteGlobalTask(pb.DeleteGlobalTaskRequest(task_id=task_id))

    async def page(self, **members: Any) -> Any:
        return await self._stub.ListGlobalTasks(pb.ListGlobalTasksRequest(**members))

    async def ids(self, **members: Any) -> list[str]:
        return [task.task_id for task in (await self.page(**members)).tasks]

    async def push(self, task_id: str, status: str, **members: Any) -> None:
        request = pb.PushGlobalTaskUpdateRequest(task_id=task_id, status=status, **_structs(members))
        await self._stub.PushGlobalTaskUpdate(request)

    async def push_all(self, *updates: tuple[str, str, dict[str, Any]]) -> list[int]:
        """The status code of each update."""
        request = pb.PushGlobalTaskUpdatesRequest()
        for task_id, status, data in updates:
            request.updates.add(task_id=task_id, status=status, task_status_data=struct(data))
        return [result.code for result in (await self._stub.PushGlobalTaskUpdates(request)).results]


def _structs(members: dict[str, Any]) -> dict[str, Any]:
    return {name: struct(value) if isinstance(value, dict) else value for name, value in members.items()}


def _json(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return found


@pytest.fixture
def tasks(tenant: Caller) -> Global:
    return Global(tenant)


async def until(tasks: Global, task_id: str, status: str) -> dict[str, Any]:
    """The task once an update that was pushed has been applied."""
    async with asyncio.timeout(20):
        while (found := await tasks.get(task_id))["task_status"] != status:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


@pytest.mark.seed("S3.2", "S3.5-12")
async def test_a_task_has_the_members_and_defaults_of_the_document(tasks: Global) -> None:
    began = int(time.time())
    task_id = await tasks.create()
    assert uuid.UUID(task_id).version == 4 and str(uuid.UUID(task_id)) == task_id
    found = await tasks.get(task_id)
    assert set(found) == MEMBERS
    created = found.pop("task_create_timestamp")
    assert isinstance(created, int) and began <= created <= time.time()
    assert found == {
        "task_id": task_id,
        "task_data": {},
        "task_type": "",
        "task_update_timestamp": created,
        "task_status": "pending",
        "task_status_data": {},
    }
    assert await tasks.create() != task_id


@pytest.mark.seed("S3.5")
@pytest.mark.parametrize("raw", [b'{"n": 1' + b"0" * 400 + b"}", b'{"n": "\\ud800"}'], ids=["number", "text"])
async def test_task_whose_input_is_no_struct_is_shown_without_it(
    tasks: Global, tenant: Caller, raw: bytes
) -> None:
    task = await tenant.create(external=True, payload=common_pb2.Payload(raw=raw))
    assert (await tasks.get(task.metadata.id))["task_data"] == {}


async def test_an_id_that_is_given_is_used_once(tasks: Global) -> None:
    given = str(uuid.uuid4())
    assert await tasks.create(task_id=given, task_data={"a": 1}) == given
    with pytest.raises(errors.AlreadyExists):
        await tasks.create(task_id=given, task_data={"a": 2})
    assert (await tasks.get(given))["task_data"] == {"a": 1}
    with pytest.raises(errors.FieldInvalid):
        await tasks.create(task_id="../x")


@pytest.mark.seed("S3.6-7", "S3.10-13")
@pytest.mark.parametrize("status", ["pending", "in_progress", "completed", "failed"])
async def test_a_task_begins_as_it_was_given(tasks: Global, status: str) -> None:
    data = {"key": "value", "deep": {"list": [1, 2.5, None, True], "text": "ü"}}
    given = {"task_data": data, "task_type": "example_task_type", "task_status_data": {"info": "status info"}}
    found = await tasks.get(await tasks.create(task_status=status, **given))
    assert {name: found[name] for name in given} == given
    assert found["task_status"] == status


@pytest.mark.seed("S3.8-9")
async def test_an_update_sets_its_time_and_leaves_that_of_the_creation(
    tasks: Global, taskdb: RunningTaskDb
) -> None:
    task_id = await tasks.create()
    hour = "create_time - interval '1 h'"
    await taskdb.execute(f"UPDATE tasks SET create_time = {hour}, update_time = {hour}")
    first = await tasks.get(task_id)
    assert first["task_update_timestamp"] == first["task_create_timestamp"] <= time.time() - 3500
    changed = await tasks.put(task_id, task_status="in_progress")
    assert changed["task_create_timestamp"] == first["task_create_timestamp"]
    assert changed["task_update_timestamp"] >= first["task_update_timestamp"] + 3500


@pytest.mark.seed("S3.3", "S3.14")
async def test_an_update_replaces_the_members_it_has_and_leaves_the_others(tasks: Global) -> None:
    task_id = await tasks.create(task_data={"key": "value"}, task_type="t", task_status_data={"a": 1})
    changed = await tasks.put(task_id, task_data={"updated_key": "updated_value"}, task_status="in_progress")
    assert changed == await tasks.get(task_id)
    assert changed["task_data"] == {"updated_key": "updated_value"}
    assert (changed["task_status"], changed["task_status_data"]) == ("in_progress", {"a": 1})
    assert (await tasks.put(task_id, task_status_data={"b": 2}))["task_status_data"] == {"b": 2}
    assert (await tasks.put(task_id, task_status_data={}))["task_status_data"] == {}
    done = await tasks.put(task_id, task_status="completed", task_status_data={"output": 42})
    assert (done["task_status"], done["task_status_data"]) == ("completed", {"output": 42})
    # The input is a record of its owner's, also after the end.
    assert (await tasks.put(task_id, task_data={"late": True}))["task_data"] == {"late": True}


async def test_a_status_moves_forward_only_and_its_end_is_final(tasks: Global) -> None:
    task_id = await tasks.create(task_status="in_progress")
    with pytest.raises(errors.PhaseConflict):
        await tasks.put(task_id, task_status="pending")
    await tasks.put(task_id, task_status="failed", task_status_data={"error": "x"})
    ended = await tasks.get(task_id)
    assert await tasks.put(task_id, task_status="failed", task_status_data={"error": "x"}) == ended
    for change in ({"task_status": "completed"}, {"task_status": "pending"}, {"task_status_data": {"y": 1}}):
        with pytest.raises(errors.TaskTerminal):
            await tasks.put(task_id, task_data={"lost": 1}, **change)
    assert await tasks.get(task_id) == ended


@pytest.mark.seed("S3.15")
@pytest.mark.parametrize("status", ["pending", "in_progress", "completed", "failed"])
async def test_a_task_is_deleted_whatever_its_status(tasks: Global, status: str) -> None:
    task_id = await tasks.create(task_status=status)
    await tasks.delete(task_id)
    for call in (
        tasks.get(task_id),
        tasks.delete(task_id),
        tasks.put(task_id),
        tasks.push(task_id, "failed"),
    ):
        with pytest.raises(errors.NotFound):
            await call
    assert await tasks.ids() == []


@pytest.mark.seed("S3.16")
async def test_tasks_are_listed_by_type_and_status(tasks: Global) -> None:
    made = {
        (kind, status): await tasks.create(task_type=kind, task_status=status)
        for kind in ("vdag_creation", "block_alloc")
        for status in ("pending", "in_progress", "completed", "failed")
    }
    assert set(await tasks.ids()) == set(made.values())
    for (kind, status), task_id in made.items():
        assert await tasks.ids(task_type=kind, task_status=status) == [task_id]
        assert task_id in await tasks.ids(task_type=kind) and len(await tasks.ids(task_type=kind)) == 4
        assert len(await tasks.ids(task_status=status)) == 2
    assert await tasks.ids(task_type="none") == []
    first = await tasks.page(page_size=5)
    assert not (await tasks.page()).HasField("next_page_token")
    rest = await tasks.ids(page_size=5, page_token=first.next_page_token)
    assert {*(task.task_id for task in first.tasks), *rest} == set(made.values()) and len(rest) == 3
    with pytest.raises(errors.FieldInvalid):
        await tasks.page(task_status="done")


@pytest.mark.seed("S3.3", "S3.17-18")
async def test_a_pushed_update_is_applied_and_the_end_is_sticky(tasks: Global, taskdb: RunningTaskDb) -> None:
    task_id = await tasks.create(task_status_data={"old": 1})
    await tasks.push(task_id, "in_progress")
    assert (await until(tasks, task_id, "in_progress"))["task_status_data"] == {"old": 1}
    await tasks.push(task_id, "completed", task_status_data={"output": "done"})
    ended = await until(tasks, task_id, "completed")
    assert ended["task_status_data"] == {"output": "done"}
    for late in ("in_progress", "failed"):
        await tasks.push(task_id, late, task_status_data={"late": True})
    # The same writer applies this one after the late ones.
    other = await tasks.create()
    await tasks.push(other, "failed")
    await until(tasks, other, "failed")
    assert await tasks.get(task_id) == ended
    assert await taskdb.rows("SELECT * FROM inbox") == []
    rejected = "SELECT count(*) FROM changes WHERE resource_id = %s AND details->>'reason' = 'TASK_TERMINAL'"
    assert await taskdb.rows(rejected, task_id) == [(2,)]


@pytest.mark.seed("S3.17")
async def test_an_update_needs_a_task_and_a_status(tasks: Global) -> None:
    with pytest.raises(errors.NotFound):
        await tasks.push("12345", "completed")
    task_id = await tasks.create()
    for status in ("", "done"):
        with pytest.raises(errors.FieldInvalid):
            await tasks.push(task_id, status)
    with pytest.raises(errors.FieldInvalid):
        await tasks.push("", "completed")


async def test_updates_of_one_task_are_applied_in_the_order_they_were_accepted(tasks: Global) -> None:
    task_id = await tasks.create()
    for number in range(200):
        await tasks.push(task_id, "in_progress", task_status_data={"n": number})
    await tasks.push(task_id, "completed", task_status_data={"n": 200})
    assert (await until(tasks, task_id, "completed"))["task_status_data"] == {"n": 200}


async def test_updates_in_bulk_have_a_result_each_and_keep_their_order(tasks: Global) -> None:
    first, second = await tasks.create(), await tasks.create()
    codes = await tasks.push_all(
        *((first, "in_progress", {"n": n}) for n in range(50)),
        ("missing", "completed", {}),
        (second, "done", {}),
        (second, "completed", {"n": float("nan")}),
        (first, "completed", {"n": 50}),
        (second, "failed", {"n": 7}),
    )
    assert codes == [0] * 50 + [Code.NOT_FOUND, Code.INVALID_ARGUMENT, Code.INVALID_ARGUMENT, 0, 0]
    assert (await until(tasks, first, "completed"))["task_status_data"] == {"n": 50}
    assert (await until(tasks, second, "failed"))["task_status_data"] == {"n": 7}
    with pytest.raises(errors.BatchTooLarge):
        await tasks.push_all()
    with pytest.raises(errors.BatchTooLarge):
        await tasks.push_all(*[(first, "completed", {})] * 1001)


async def test_a_change_is_applied_behind_what_was_pushed(tasks: Global) -> None:
    task_id = await tasks.create()
    for number in range(50):
        await tasks.push(task_id, "in_progress", task_status_data={"n": number})
    assert (await tasks.put(task_id, task_status_data={"put": True}))["task_status_data"] == {"put": True}
    assert (await tasks.get(task_id))["task_status_data"] == {"put": True}


@pytest.mark.seed("S3.1", "S3.20-25")
async def test_the_six_types_ship_as_a_preset_and_any_other_is_accepted(
    admin: Caller, tasks: Global, taskdb: RunningTaskDb
) -> None:
    before = await tasks.create(task_type="vdag_creation", task_data={"any": 1})
    assert (await load(admin, "global-tasks"))[1:] == SIX
    for kind in (*SIX, "block_dealloc"):
        found = await tasks.get(await tasks.create(task_type=kind, task_data={"x": 1}))
        assert (found["task_type"], found["task_data"], found["task_status"]) == (kind, {"x": 1}, "pending")
    assert (await tasks.get(before))["task_type"] == "vdag_creation"
    await load(admin, "aiopslab")
    with pytest.raises(errors.FieldInvalid) as refused:
        await tasks.create(task_type="aiopslab.problem", task_data={"problem_id": "p"})
    assert refused.value.violations[0].field == "task_type"


async def test_only_external_tasks_exist_here(tasks: Global, tenant: Caller) -> None:
    command = (await tenant.create()).metadata.id
    external = (await tenant.create(external=True)).metadata.id
    assert await tasks.ids() == [external]
    calls = (tasks.get, tasks.delete, tasks.put)
    for call in (*(each(command) for each in calls), tasks.push(command, "failed")):
        with pytest.raises(errors.NotFound):
            await call
    assert (await tasks.get(external))["task_status"] == "pending"


async def test_the_tenant_is_that_of_the_key_or_of_the_header(
    tasks: Global, admin: Caller, taskdb: RunningTaskDb
) -> None:
    await taskdb.add_tenant("acme")
    acme = (("x-tenant", "acme"),)
    foreign = await Global(admin).create(metadata=acme)
    own = await tasks.create()
    assert (await Global(admin).get(foreign, acme))["task_id"] == foreign
    assert (await Global(admin).get(own))["task_id"] == own
    for call in (tasks.get(foreign), tasks.get(foreign, acme), tasks.create(metadata=acme)):
        with pytest.raises(errors.NotFound):
            await call


async def test_a_large_input_is_kept_whole_and_a_larger_one_refused(tasks: Global) -> None:
    data = {"text": "x" * 200_000, "number": 1}
    assert (await tasks.get(await tasks.create(task_data=data)))["task_data"] == data
    with pytest.raises(errors.InvalidArgument):
        await tasks.create(task_data={"text": "x" * 1_100_000})
    with pytest.raises(errors.TooLarge):
        await tasks.create(task_status_data={"text": "x" * 100_000})
