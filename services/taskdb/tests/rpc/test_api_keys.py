"""ApiKeyService: keys are shown once, stored hashed, scoped, expire, and are revoked for good."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task, run_taskdb
from taskyard import errors
from taskyard.status import translated
from taskyard.v1 import (
    api_key_pb2,
    api_key_service_pb2,
    common_pb2,
    session_service_pb2,
    task_pb2,
    task_service_pb2,
    task_type_service_pb2,
)
from taskyard.v1.task_type_pb2 import TaskType
from taskyard_taskdb.settings import ServerSettings

Service = api_key_service_pb2
TENANT, ADMIN = api_key_pb2.PRINCIPAL_KIND_TENANT, api_key_pb2.PRINCIPAL_KIND_ADMIN
RUNNER = api_key_pb2.PRINCIPAL_KIND_RUNNER


async def make(caller: Caller, key_id: str = "", **fields: Any) -> Service.CreateApiKeyResponse:
    """A new key, of the tenant "default" by default."""
    fields.setdefault("kind", TENANT)
    if fields["kind"] == TENANT:
        fields.setdefault("tenant", "default")
    request = Service.CreateApiKeyRequest(api_key_id=key_id, api_key=api_key_pb2.ApiKey(**fields))
    made: Service.CreateApiKeyResponse = await caller.api_keys.CreateApiKey(request)
    return made


async def revoke(caller: Caller, name: str) -> api_key_pb2.ApiKey:
    revoked: api_key_pb2.ApiKey = (
        await caller.api_keys.RevokeApiKey(Service.RevokeApiKeyRequest(name=name))
    ).api_key
    return revoked


def holder(taskdb: RunningTaskDb, secret: str) -> Caller:
    caller = Caller(taskdb.address, secret)
    taskdb.callers.append(caller)
    return caller


async def works(caller: Caller) -> bool:
    try:
        await caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent="tenants/-", page_size=1))
    except errors.Unauthenticated:
        return False
    return True


@pytest.fixture
async def replica(taskdb: RunningTaskDb) -> AsyncIterator[RunningTaskDb]:
    """A second taskdb on the same database, which looks at keys often."""
    often = timedelta(milliseconds=200)
    async for running in run_taskdb(taskdb.url, key_cache_ttl=timedelta(0), key_check_interval=often):
        yield running


async def test_secret_is_returned_once_and_only_its_digest_is_stored(
    admin: Caller, taskdb: RunningTaskDb
) -> None:
    made = await make(admin, "mykey1", description="for tests")
    assert made.secret.startswith("ty_mykey1_") and await works(holder(taskdb, made.secret))
    listed = await admin.api_keys.ListApiKeys(Service.ListApiKeysRequest())
    assert made.api_key in listed.api_keys
    secret = made.secret.removeprefix("ty_mykey1_")
    assert secret not in str(listed) and secret not in str(made.api_key)
    for table in ("api_keys", "changes"):
        assert secret not in str(await taskdb.rows(f"SELECT * FROM {table}"))


@pytest.mark.covers("CreateApiKey", "NOT_FOUND")
@pytest.mark.covers("CreateApiKey", "ALREADY_EXISTS")
@pytest.mark.covers("CreateApiKey", "FIELD_INVALID")
async def test_bad_keys_are_refused_with_the_field(admin: Caller) -> None:
    await make(admin, "mykey1")
    with pytest.raises(errors.AlreadyExists):
        await make(admin, "mykey1")
    with pytest.raises(errors.NotFound):
        await make(admin, tenant="nobody")
    past = Timestamp(seconds=1)
    scope = api_key_pb2.RunnerScope(tenants=["a b"])
    for field, key_id, fields in (
        ("api_key_id", "UP", {}),
        ("api_key_id", "abc", {}),
        ("api_key.kind", "", {"kind": 0}),
        ("api_key.tenant", "", {"tenant": ""}),
        ("api_key.tenant", "", {"kind": ADMIN, "tenant": "default"}),
        ("api_key.read_only", "", {"kind": ADMIN, "read_only": True}),
        ("api_key.runner_scope", "", {"runner_scope": scope}),
        ("api_key.runner_scope.tenants[0]", "", {"kind": RUNNER, "runner_scope": scope}),
        ("api_key.expire_time", "", {"expire_time": past}),
        ("api_key.description", "", {"description": "a\0b"}),
    ):
        with pytest.raises(errors.FieldInvalid) as refused:
            await make(admin, key_id, **fields)
        assert refused.value.violations[0].field == field


async def test_the_key_of_another_tenant_looks_like_one_that_does_not_exist(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await taskdb.add_tenant("other")
    theirs = await make(admin, "theirs1", tenant="other")
    refusals = []
    for name in ("apiKeys/theirs1", "apiKeys/absent1"):
        with pytest.raises(errors.NotFound) as refused:
            await revoke(tenant, name)
        refusals.append(str(refused.value).replace(name, "apiKeys/*"))
    assert refusals[0] == refusals[1]
    them = holder(taskdb, theirs.secret)
    await them.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent="tenants/other"))


async def test_creating_a_key_does_not_reveal_which_ids_other_tenants_have(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await taskdb.add_tenant("other")
    await make(admin, "theirs1", tenant="other")
    await make(admin, "admins1", kind=ADMIN, tenant="")
    answers = set()
    for key_id in ("theirs1", "admins1", "absent1"):
        with pytest.raises(errors.TaskyardError) as refused:
            await make(tenant, key_id)
        answers.add((type(refused.value), str(refused.value).replace(key_id, "*")))
    assert len(answers) == 1, answers
    assert (await make(tenant)).api_key.tenant == "default"


@pytest.mark.covers("RevokeApiKey", "NOT_FOUND")
@pytest.mark.covers("ListApiKeys", "PAGE_TOKEN_INVALID")
async def test_a_tenant_manages_its_own_keys_only(
    admin: Caller, tenant: Caller, taskdb: RunningTaskDb
) -> None:
    await taskdb.add_tenant("other")
    theirs = await make(admin, tenant="other")
    mine = await make(tenant, read_only=True)
    for call, refusal in (
        (make(tenant, kind=ADMIN), errors.PermissionDenied),
        (make(tenant, kind=RUNNER), errors.PermissionDenied),
        (make(tenant, tenant="other"), errors.NotFound),
        (make(tenant, tenant="nobody"), errors.NotFound),
        (revoke(tenant, theirs.api_key.name), errors.NotFound),
        (revoke(tenant, "apiKeys/none1"), errors.NotFound),
    ):
        with pytest.raises(refusal):
            await call
    listed = await tenant.api_keys.ListApiKeys(Service.ListApiKeysRequest())
    assert {key.tenant for key in listed.api_keys} == {"default"} and mine.api_key in listed.api_keys
    with pytest.raises(errors.PageTokenInvalid):
        await tenant.api_keys.ListApiKeys(Service.ListApiKeysRequest(page_token="x"))
    reader = holder(taskdb, mine.secret)
    assert await works(reader)
    for write in (reader.tasks.CreateTask(new_task()), make(reader), revoke(reader, mine.api_key.name)):
        with pytest.raises(errors.PermissionDenied):
            await write


async def test_a_revoked_key_is_refused_at_once_here_and_within_10_s_on_every_replica(
    admin: Caller, taskdb: RunningTaskDb, replica: RunningTaskDb
) -> None:
    # The time for which a replica caches a verified key; the replica of this test does not cache.
    usual = ServerSettings(database_url=taskdb.url)
    assert usual.key_cache_ttl <= timedelta(seconds=9)
    made = await make(admin)
    here, there = holder(taskdb, made.secret), holder(replica, made.secret)
    assert await works(here) and await works(there)
    revoked = await revoke(admin, made.api_key.name)
    assert revoked.HasField("revoke_time")
    assert not await works(here)
    assert await revoke(admin, made.api_key.name) == revoked, "revoking again changes nothing"
    assert not await works(there)


async def test_watches_of_a_revoked_key_end(
    admin: Caller, taskdb: RunningTaskDb, replica: RunningTaskDb
) -> None:
    made = await make(admin)
    request = task_service_pb2.WatchTasksRequest(parent="tenants/default")
    mine = holder(replica, made.secret).tasks.WatchTasks(request)
    theirs = (await replica.caller()).tasks.WatchTasks(request)
    for watch in (mine, theirs):
        assert (await watch.read()).resume_token
    await revoke(admin, made.api_key.name)
    with pytest.raises(errors.Unauthenticated, match="revoked"), translated():
        async with asyncio.timeout(30):
            while True:
                await mine.read()
    await (await taskdb.caller()).create()
    async with asyncio.timeout(30):
        while not (await theirs.read()).events:
            pass
    theirs.cancel()


async def test_an_expired_key_is_refused(admin: Caller, taskdb: RunningTaskDb) -> None:
    made = await make(admin, expire_time=Timestamp(seconds=2**33))
    async with taskdb.pool.transaction() as tx:
        await tx.execute("UPDATE api_keys SET expire_time = now() WHERE key_id <> ''")
    assert not await works(holder(taskdb, made.secret))


async def test_keys_are_rotated_under_load_without_losing_a_task(
    admin: Caller, taskdb: RunningTaskDb
) -> None:
    old = await make(admin)
    caller = holder(taskdb, old.secret)
    stored: list[str] = []
    refused = 0
    done, served = asyncio.Event(), asyncio.Event()

    async def create() -> None:
        nonlocal caller, refused
        while not done.is_set():
            used = caller
            try:
                stored.append((await used.create()).name)
                if used is caller:
                    served.set()
            except errors.Unauthenticated:
                refused += 1
                assert used is not caller, "the new key was handed out before the old one was revoked"

    workers = [asyncio.create_task(create()) for _ in range(4)]
    for _ in range(3):
        served.clear()
        await served.wait()
        new = await make(admin)
        caller = holder(taskdb, new.secret)
        await revoke(admin, old.api_key.name)
        old = new
    done.set()
    await asyncio.gather(*workers)
    rows = await taskdb.rows("SELECT count(*) FROM tasks")
    assert rows == [(len(stored),)] and stored


async def test_runner_keys_carry_the_scope_they_were_made_with(
    admin: Caller, scheduler: Caller, taskdb: RunningTaskDb
) -> None:
    scope = api_key_pb2.RunnerScope(runner_id="gpu-*", tenants=["default"], labels={"zone": "a"})
    made = await make(admin, kind=RUNNER, runner_scope=scope)
    response = await scheduler.sessions.VerifyApiKey(session_service_pb2.VerifyApiKeyRequest(key=made.secret))
    assert response.api_key.runner_scope == scope
    await revoke(admin, made.api_key.name)
    with pytest.raises(errors.Unauthenticated):
        await scheduler.sessions.VerifyApiKey(session_service_pb2.VerifyApiKeyRequest(key=made.secret))


async def test_keys_are_in_the_audit_of_their_tenant(admin: Caller, taskdb: RunningTaskDb) -> None:
    made = await make(admin, "mykey1")
    await revoke(admin, made.api_key.name)
    await make(admin, "mykey2", kind=RUNNER)
    rows = await taskdb.rows(
        "SELECT event, tenant_id, resource_id, actor_id <> '' FROM changes "
        "WHERE resource_kind = 5 ORDER BY id"
    )
    assert rows == [
        (80, "default", "mykey1", True),
        (81, "default", "mykey1", True),
        (80, "system", "mykey2", True),
    ]


@pytest.mark.covers("WhoAmI", "UNAUTHENTICATED")
async def test_a_key_of_any_kind_learns_whose_it_is(admin: Caller, taskdb: RunningTaskDb) -> None:
    await taskdb.add_tenant("acme2")
    for fields in (
        {"kind": TENANT, "tenant": "acme2", "read_only": True},
        {"kind": ADMIN},
        {"kind": RUNNER, "runner_scope": api_key_pb2.RunnerScope(runner_id="w-*")},
    ):
        made = await make(admin, **fields)
        found = await holder(taskdb, made.secret).api_keys.WhoAmI(Service.WhoAmIRequest())
        assert found.api_key == made.api_key
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", found.server_version)
    with pytest.raises(errors.Unauthenticated):
        await holder(taskdb, f"{made.secret}x").api_keys.WhoAmI(Service.WhoAmIRequest())


async def test_an_expiring_key_makes_no_key_that_outlives_it(taskdb: RunningTaskDb, admin: Caller) -> None:
    def after(seconds: int) -> Timestamp:
        made = Timestamp()
        made.GetCurrentTime()
        made.seconds += seconds
        return made

    hour = after(3600)
    for kind in (TENANT, ADMIN):
        expiring = holder(taskdb, (await make(admin, expire_time=hour, kind=kind)).secret)
        for longer in (None, after(7200)):
            with pytest.raises(errors.FieldInvalid, match="at the latest") as refused:
                await make(expiring, expire_time=longer)
            assert refused.value.violations[0].field == "api_key.expire_time"
        assert (await make(expiring, expire_time=after(60))).secret
        assert (await make(expiring, expire_time=hour)).secret


async def test_secrets_of_tasks_and_types_are_hidden_from_keys_that_only_read(
    taskdb: RunningTaskDb, tenant: Caller
) -> None:
    """Environment and headers of the callback, in every call that returns a task or a type."""
    secret = "hidden-from-readers"
    env = [common_pb2.EnvVar(name="TOKEN", value=secret)]
    callback = task_pb2.Callback(url="https://example.com/", headers={"authorization": secret})
    task = await tenant.create(env=env, callback=callback, task_id="t")
    made = task_type_service_pb2.CreateTaskTypeRequest(
        parent="tenants/default", task_type_id="plan", task_type=TaskType(env=env, callback=callback)
    )
    await tenant.task_types.CreateTaskType(made)
    reader = await taskdb.caller(read_only=True)
    full = task_service_pb2.TASK_VIEW_FULL
    parent = "tenants/default"

    async def answers(caller: Caller, view: Any) -> list[Any]:
        watch = task_service_pb2.WatchTasksRequest(parent=parent, snapshot=True, view=view)
        stream = caller.tasks.WatchTasks(watch)
        found = [await stream.read()]
        await tenant.tasks.CreateTask(new_task(env=env, callback=callback))
        while len(found) < 3:
            found.append(await stream.read())
        stream.cancel()
        calls = [
            caller.tasks.GetTask(task_service_pb2.GetTaskRequest(name=task.name, view=view)),
            caller.tasks.ListTasks(task_service_pb2.ListTasksRequest(parent=parent, view=view)),
            caller.tasks.BatchGetTasks(
                task_service_pb2.BatchGetTasksRequest(parent=parent, names=[task.name], view=view)
            ),
            caller.tasks.WaitTask(
                task_service_pb2.WaitTaskRequest(name=task.name, view=view, timeout=Duration(seconds=0))
            ),
        ]
        return found + [await call for call in calls]

    types = [
        await reader.task_types.GetTaskType(
            task_type_service_pb2.GetTaskTypeRequest(name=f"{parent}/taskTypes/plan")
        ),
        await reader.task_types.ListTaskTypes(task_type_service_pb2.ListTaskTypesRequest(parent=parent)),
    ]
    for answer in [*await answers(reader, full), *types]:
        assert answer.ByteSize() and secret not in str(answer)
    shown = await answers(tenant, full)
    assert sum(secret in str(answer) for answer in shown) >= 6
    for answer in await answers(tenant, task_service_pb2.TASK_VIEW_BASIC):
        assert answer.ByteSize() and secret not in str(answer)
