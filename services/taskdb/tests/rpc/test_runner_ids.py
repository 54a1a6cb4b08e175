"""Whose key may use the id of a runner that is registered."""

from __future__ import annotations

import asyncio

import pytest

from services.taskdb.tests.conftest import Caller, RunningTaskDb
from services.taskdb.tests.rpc.test_runners import get
from services.taskdb.tests.rpc.test_workers import register
from services.taskdb.tests.yard import Runner, Yard
from taskyard.errors import FieldInvalid, PermissionDenied
from taskyard.v1 import api_key_pb2, api_key_service_pb2, runner_service_pb2
from taskyard_taskdb.storage.tenant import api_keys
from taskyard_taskdb.storage.tenant.api_keys import RunnerScope
from tests.harness.link_runner import registration

ACME, OTHER = RunnerScope(tenants=("default", "acme")), RunnerScope(tenants=("other",))


async def add(taskdb: RunningTaskDb, key_id: str, scope: RunnerScope) -> str:
    key = api_keys.StoredKey(key_id, api_keys.RUNNER, b"x" * 32, runner_scope=scope)
    await taskdb.pool.run(lambda tx: api_keys.insert_key(tx, key))
    return key_id


@pytest.mark.parametrize(
    "scope",
    [
        OTHER,
        RunnerScope(),
        RunnerScope("runner-*", ("other",)),
        RunnerScope(tenants=ACME.tenants, labels={"zone": "a"}),
    ],
)
async def test_a_key_of_another_scope_does_not_end_the_session_of_a_runner(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb, scope: RunnerScope
) -> None:
    victim, _ = await yard.hello(Runner("runner-1", await add(taskdb, "acmes", ACME)))
    await yard.create()
    assert len((await yard.claim(victim)).assignments) == 1
    before = await get(admin)
    with pytest.raises(PermissionDenied, match="another scope"):
        await yard.hello(Runner("runner-1", await add(taskdb, "others", scope)), takeover=True)
    yard.key_id = "others"
    with pytest.raises(PermissionDenied, match="another scope"):
        await register(yard, "runner-1")
    after = await get(admin)
    assert (after.session_id, after.tasks, after.tenants) == (before.session_id, before.tasks, before.tenants)
    assert not (await yard.renew(victim)).lost


@pytest.mark.parametrize(
    "scope",
    [
        RunnerScope(tenants=("acme", "default")),
        RunnerScope("runner-*", ACME.tenants),
        # Made for this runner by an administrator.
        RunnerScope("runner-1", ("other",)),
    ],
)
async def test_a_new_key_of_the_same_or_a_narrower_scope_takes_over(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb, scope: RunnerScope
) -> None:
    await yard.hello(Runner("runner-1", await add(taskdb, "acmes", ACME)))
    await yard.hello(Runner("runner-1", await add(taskdb, "rotated", scope)), takeover=True)
    assert list((await get(admin)).tenants) == list(scope.tenants)


async def test_a_runner_with_a_key_of_its_own_is_not_replaced_by_a_key_for_any(
    yard: Yard, taskdb: RunningTaskDb
) -> None:
    await yard.hello(Runner("runner-1", await add(taskdb, "own1", RunnerScope("runner-1"))))
    for key_id, pattern in (("any1", ""), ("some1", "runner-*"), ("near1", "runner-1*")):
        with pytest.raises(PermissionDenied, match="another scope"):
            await yard.hello(
                Runner("runner-1", await add(taskdb, key_id, RunnerScope(pattern))), takeover=True
            )


async def test_the_id_of_a_deleted_runner_is_free(yard: Yard, admin: Caller, taskdb: RunningTaskDb) -> None:
    await yard.hello(Runner("runner-1", await add(taskdb, "acmes", ACME)))
    await admin.runners.DeleteRunner(runner_service_pb2.DeleteRunnerRequest(name="runners/runner-1"))
    await yard.hello(Runner("runner-1", await add(taskdb, "others", OTHER)))
    assert list((await get(admin)).tenants) == ["other"]


async def test_of_two_keys_that_register_a_new_id_at_once_one_is_refused(
    yard: Yard, admin: Caller, taskdb: RunningTaskDb
) -> None:
    keys = [await add(taskdb, "acmes", ACME), await add(taskdb, "others", OTHER)]
    for number in range(10):
        runner_id = f"runner-{number}"
        results = await asyncio.gather(
            *(yard.hello(Runner(runner_id, key), takeover=True) for key in keys), return_exceptions=True
        )
        assert sorted(isinstance(result, PermissionDenied) for result in results) == [False, True], results


@pytest.mark.seed("S0.44", "S0.80-81")
@pytest.mark.covers("OpenSession", "FIELD_INVALID")
@pytest.mark.covers("RegisterWorker", "FIELD_INVALID")
async def test_the_rules_of_a_key_are_checked_at_registration(yard: Yard, taskdb: RunningTaskDb) -> None:
    scope = RunnerScope(runner_id_pattern=r"^worker-\d{3}-kind$", backend_type_required=True)
    key = await add(taskdb, "kinds", scope)
    with pytest.raises(FieldInvalid, match="'worker-1' does not match"):
        await yard.hello(Runner("worker-1", key))
    with pytest.raises(FieldInvalid, match="requires one; set --backend-type"):
        await yard.hello(Runner("worker-001-kind", key))
    yard.key_id = key
    with pytest.raises(FieldInvalid, match="does not match"):
        await register(yard, "worker-1")
    with pytest.raises(FieldInvalid, match="requires one"):
        await register(yard, "worker-001-kind")
    named = registration(10)
    named.backend_type = "kind"
    await register(yard, "worker-001-kind", registration=named)


@pytest.mark.covers("CreateApiKey", "FIELD_INVALID")
async def test_a_key_keeps_its_rules_and_refuses_a_bad_pattern(admin: Caller) -> None:
    scope = api_key_pb2.RunnerScope(runner_id_pattern="^w-[0-9]+$", backend_type_required=True)
    key = api_key_pb2.ApiKey(kind=api_key_pb2.PRINCIPAL_KIND_RUNNER, runner_scope=scope)
    made = await admin.api_keys.CreateApiKey(api_key_service_pb2.CreateApiKeyRequest(api_key=key))
    assert made.api_key.runner_scope == scope
    key.runner_scope.runner_id_pattern = "("
    with pytest.raises(FieldInvalid, match="runner_id_pattern"):
        await admin.api_keys.CreateApiKey(api_key_service_pb2.CreateApiKeyRequest(api_key=key))
