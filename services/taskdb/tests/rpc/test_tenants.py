"""TenantService: tiers, overrides, suspension, pauses, usage, and the end of a tenant."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.yard import Yard
from taskyard import errors
from taskyard.v1 import tenant_pb2, tenant_service_pb2
from taskyard_taskdb.storage.tenant import api_keys

Service = tenant_service_pb2
FREE, STANDARD = tenant_pb2.TENANT_TIER_FREE, tenant_pb2.TENANT_TIER_STANDARD
PREMIUM, ENTERPRISE = tenant_pb2.TENANT_TIER_PREMIUM, tenant_pb2.TENANT_TIER_ENTERPRISE


async def create(
    admin: Caller, tenant_id: str = "acme", tier: Any = FREE, request_id: str = "", **fields: Any
) -> tenant_pb2.Tenant:
    """A new tenant."""
    tenant = tenant_pb2.Tenant(display_name=f"{tenant_id} Ltd", tier=tier, **fields)
    request = Service.CreateTenantRequest(tenant_id=tenant_id, tenant=tenant, request_id=request_id)
    made: tenant_pb2.Tenant = (await admin.tenants.CreateTenant(request)).tenant
    return made


async def update(admin: Caller, name: str, *paths: str, **fields: Any) -> tenant_pb2.Tenant:
    """The tenant after a change of these paths."""
    request = Service.UpdateTenantRequest(
        tenant=tenant_pb2.Tenant(name=name, **fields), update_mask=FieldMask(paths=paths)
    )
    changed: tenant_pb2.Tenant = (await admin.tenants.UpdateTenant(request)).tenant
    return changed


async def get(caller: Caller, name: str) -> tenant_pb2.Tenant:
    found: tenant_pb2.Tenant = (await caller.tenants.GetTenant(Service.GetTenantRequest(name=name))).tenant
    return found


def limits(quota: tenant_pb2.TenantQuota) -> tuple[int, ...]:
    return (
        quota.max_concurrent_tasks,
        quota.max_queue_depth,
        quota.rate_limit_per_sec,
        quota.weight,
        quota.rate_burst,
    )


@pytest.mark.seed("S2.3-5", "S2.9-10", "S2.12-15", "S2.120")
@pytest.mark.parametrize(
    ("tier", "numbers"),
    [
        (FREE, (10, 50, 1, 1, 5)),
        (STANDARD, (100, 500, 10, 10, 50)),
        (PREMIUM, (500, 2000, 50, 50, 200)),
        (ENTERPRISE, (2000, 10000, 200, 100, 1000)),
    ],
)
async def test_tier_decides_the_limits(admin: Caller, tier: Any, numbers: tuple[int, ...]) -> None:
    made = await create(admin, "cust_abc", tier)
    assert limits(made.effective_quota) == numbers
    assert (made.name, made.display_name, made.tier) == ("tenants/cust_abc", "cust_abc Ltd", tier)
    assert not made.HasField("quota") and made.resource_version == 1
    assert made.create_time.seconds > 0 and made.update_time == made.create_time
    assert made == await get(admin, made.name)


@pytest.mark.seed("S2.6-8")
async def test_own_numbers_win_over_the_tier_and_zero_is_unlimited(admin: Caller) -> None:
    made = await create(admin, quota=tenant_pb2.TenantQuota(max_queue_depth=7, rate_limit_per_sec=0))
    assert limits(made.effective_quota) == (10, 7, 0, 1, 5)
    changed = await update(
        admin,
        made.name,
        "quota.max_queue_depth",
        "quota.weight",
        "tier",
        tier=STANDARD,
        quota=tenant_pb2.TenantQuota(weight=3),
    )
    assert limits(changed.effective_quota) == (100, 500, 0, 3, 50)
    assert not changed.quota.HasField("max_queue_depth") and changed.quota.HasField("rate_limit_per_sec")
    assert changed.resource_version == 2 and changed.update_time != made.update_time


@pytest.mark.covers("CreateTenant", "ALREADY_EXISTS")
async def test_an_id_is_taken_once_and_a_repeated_request_finds_its_tenant(admin: Caller) -> None:
    first = await create(admin, request_id="r1")
    assert await create(admin, request_id="r1") == first
    with pytest.raises(errors.AlreadyExists):
        await create(admin)
    with pytest.raises(errors.AlreadyExists):
        await create(admin, tier=PREMIUM, request_id="r1")


@pytest.mark.parametrize(
    ("tenant_id", "fields", "field"),
    [
        ("a/b", {}, "tenant_id"),
        ("..", {}, "tenant_id"),
        ("x" * 65, {}, "tenant_id"),
        ("acme", {"tier": 0}, "tenant.tier"),
        ("acme", {"tier": 9}, "tenant.tier"),
        ("acme", {"display_name": ""}, "tenant.display_name"),
        ("acme", {"display_name": "x" * 256}, "tenant.display_name"),
        ("acme", {"display_name": "a\0b"}, "tenant.display_name"),
        ("acme", {"quota": tenant_pb2.TenantQuota(max_queue_depth=-1)}, "tenant.quota.max_queue_depth"),
        ("acme", {"quota": tenant_pb2.TenantQuota(weight=0)}, "tenant.quota.weight"),
    ],
)
async def test_bad_tenants_are_refused_with_the_field(
    admin: Caller, tenant_id: str, fields: dict[str, Any], field: str
) -> None:
    given: dict[str, Any] = {"display_name": "Acme", "tier": FREE} | fields
    tenant = tenant_pb2.Tenant(**given)
    with pytest.raises(errors.FieldInvalid) as refused:
        await admin.tenants.CreateTenant(Service.CreateTenantRequest(tenant_id=tenant_id, tenant=tenant))
    assert [v.field for v in refused.value.violations] == [field], refused.value


@pytest.mark.covers("UpdateTenant", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("DeleteTenant", "RESOURCE_VERSION_MISMATCH")
@pytest.mark.covers("UpdateTenant", "NOT_FOUND")
@pytest.mark.covers("GetTenant", "NOT_FOUND")
@pytest.mark.covers("DeleteTenant", "NOT_FOUND")
@pytest.mark.covers("GetTenantUsage", "NOT_FOUND")
async def test_versions_guard_a_change_and_unknown_tenants_are_not_found(admin: Caller) -> None:
    made = await create(admin)
    await update(admin, made.name, "suspended", suspended=True)
    with pytest.raises(errors.ResourceVersionMismatch):
        await update(admin, made.name, "suspended", resource_version=1)
    with pytest.raises(errors.ResourceVersionMismatch):
        await admin.tenants.DeleteTenant(Service.DeleteTenantRequest(name=made.name, resource_version=1))
    same = await update(admin, made.name, "suspended", suspended=True, resource_version=2)
    assert same.resource_version == 2, "what changes nothing is no change"
    for call in (
        admin.tenants.GetTenant(Service.GetTenantRequest(name="tenants/nobody")),
        admin.tenants.GetTenantUsage(Service.GetTenantUsageRequest(name="tenants/nobody")),
        admin.tenants.DeleteTenant(Service.DeleteTenantRequest(name="tenants/nobody")),
        update(admin, "tenants/nobody", "suspended", suspended=True),
    ):
        with pytest.raises(errors.NotFound):
            await call
    with pytest.raises(errors.FieldInvalid) as refused:
        await update(admin, made.name, "tier")
    assert refused.value.violations[0].field == "tenant.tier"
    with pytest.raises(errors.FieldImmutable):
        await update(admin, made.name, "create_time")
    with pytest.raises(errors.FieldInvalid, match="not a field of a tenant"):
        await update(admin, made.name, "colour")


@pytest.mark.covers("ListTenants", "FILTER_INVALID")
@pytest.mark.covers("ListTenants", "PAGE_TOKEN_INVALID")
async def test_lists_are_by_id_filtered_and_in_pages(admin: Caller) -> None:
    for number in range(5):
        await create(admin, f"t{number}", STANDARD if number % 2 else FREE, suspended=number == 3)

    async def ids(**fields: Any) -> list[str]:
        found: list[str] = []
        while True:
            page = await admin.tenants.ListTenants(Service.ListTenantsRequest(**fields))
            found += [tenant.name.removeprefix("tenants/") for tenant in page.tenants]
            fields["page_token"] = page.next_page_token
            if not page.next_page_token:
                return found

    assert await ids() == ["default", "system", "t0", "t1", "t2", "t3", "t4"]
    assert await ids(page_size=2, filter="tier = STANDARD") == ["t1", "t3"]
    assert await ids(filter="suspended = true OR tier = FREE") == ["t0", "t2", "t3", "t4"]
    assert await ids(filter='create_time < "2001-01-01T00:00:00Z"') == []
    with pytest.raises(errors.FilterInvalid):
        await ids(filter="colour = red")
    with pytest.raises(errors.PageTokenInvalid):
        await ids(page_token="nonsense")


@pytest.mark.covers("CreateTask", "TENANT_SUSPENDED")
async def test_suspension_refuses_tasks_and_claims_a_pause_only_claims(
    admin: Caller, tenant: Caller, yard: Yard
) -> None:
    runner, _ = await yard.hello()
    [name] = await yard.create()
    await update(admin, "tenants/default", "suspended", suspended=True)
    with pytest.raises(errors.TenantSuspended):
        await yard.create()
    assert not (await yard.claim(runner)).assignments
    await update(admin, "tenants/default", "suspended", "queue_paused", queue_paused=True)
    await yard.create()
    assert not (await yard.claim(runner)).assignments
    await update(admin, "tenants/default", "queue_paused")
    assert name in {a.lease.task for a in (await yard.claim(runner)).assignments}


@pytest.mark.covers("DeleteTenant", "NOT_EMPTY")
async def test_a_tenant_with_tasks_is_deleted_by_force_only_and_its_audit_stays(
    admin: Caller, taskdb: RunningTaskDb
) -> None:
    made = await create(admin)
    owner = await taskdb.caller(api_keys.TENANT, "acme")
    waiting = await owner.create(parent=made.name, slot="s", request_id="r1")
    running = await owner.create(parent=made.name, total_timeout={"seconds": 600})
    await taskdb.start(running.name)
    other = await (await taskdb.caller()).create()
    with pytest.raises(errors.NotEmpty) as refused:
        await admin.tenants.DeleteTenant(Service.DeleteTenantRequest(name=made.name))
    assert refused.value.child_count == 2
    await admin.tenants.DeleteTenant(Service.DeleteTenantRequest(name=made.name, force=True))
    for name in (waiting.name, running.name):
        with pytest.raises(errors.NotFound):
            await admin.get(name)
    with pytest.raises(errors.NotFound):
        await get(admin, made.name)
    tables = "tasks queue leases slots timers idempotency_keys placement_classes api_keys tenant_counters"
    for table in tables.split():
        assert await taskdb.rows(f"SELECT count(*) FROM {table} WHERE tenant_id = 'acme'") == [(0,)], table
    assert await taskdb.rows("SELECT runner_id FROM revocations WHERE tenant_id = 'acme'") == [("r1",)]
    events = await taskdb.rows("SELECT event FROM changes WHERE resource_kind = 3 ORDER BY id")
    assert [event for (event,) in events][-1] == 62
    assert (await taskdb.rows("SELECT count(*) FROM changes WHERE tenant_id = 'acme'"))[0][0] >= 5
    assert (await admin.get(other.name)).metadata.id


async def test_the_tenant_of_shared_types_is_never_deleted(admin: Caller) -> None:
    with pytest.raises(errors.FieldInvalid):
        await admin.tenants.DeleteTenant(Service.DeleteTenantRequest(name="tenants/system", force=True))


async def test_a_tenant_reads_itself_and_administers_nothing(admin: Caller, tenant: Caller) -> None:
    await create(admin)
    assert (await get(tenant, "tenants/default")).name == "tenants/default"
    with pytest.raises(errors.NotFound):
        await get(tenant, "tenants/acme")
    for call in (
        create(tenant, "mine"),
        update(tenant, "tenants/default", "tier", tier=ENTERPRISE),
        tenant.tenants.ListTenants(Service.ListTenantsRequest()),
        tenant.tenants.DeleteTenant(Service.DeleteTenantRequest(name="tenants/default")),
    ):
        with pytest.raises(errors.PermissionDenied):
            await call


async def test_changes_of_tenants_are_in_the_audit_with_their_actor(
    admin: Caller, taskdb: RunningTaskDb
) -> None:
    made = await create(admin)
    await update(admin, made.name, "suspended", suspended=True)
    rows = await taskdb.rows(
        "SELECT event, version, tenant_id, resource_id, actor_id <> '', details FROM changes "
        "WHERE resource_kind = 3 ORDER BY id"
    )
    assert [row[:5] for row in rows] == [(60, 1, "acme", "acme", True), (61, 2, "acme", "acme", True)]
    assert rows[0][5]["tier"] == "FREE" and rows[1][5] == {"suspended": True}


@pytest.mark.seed("S2.3-5")
@pytest.mark.parametrize(
    "values",
    [
        "('" + "x" * 65 + "', 'n', 1)",
        "('', 'n', 1)",
        "('t', '" + "x" * 256 + "', 1)",
        "('t', NULL, 1)",
        "('t', 'n', NULL)",
        "('t', 'n', 0)",
        "('t', 'n', 5)",
        "('default', 'n', 1)",
    ],
)
async def test_database_refuses_tenants_that_break_the_rules(database_url: str, values: str) -> None:
    with psycopg.connect(database_url) as connection, pytest.raises(psycopg.IntegrityError):
        connection.execute(f"INSERT INTO tenants (tenant_id, display_name, tier) VALUES {values}")


async def test_usage_counts_pending_and_leased_tasks(
    admin: Caller, taskdb: RunningTaskDb, tenant: Caller
) -> None:
    made = await create(admin)
    owner = await taskdb.caller(api_keys.TENANT, "acme")
    for _ in range(3):
        await owner.tasks.CreateTask(new_task(made.name))
    running = await owner.create(parent=made.name)
    await taskdb.start(running.name)
    usage = await owner.tenants.GetTenantUsage(Service.GetTenantUsageRequest(name=made.name))
    assert (usage.active_tasks, usage.queued_tasks) == (1, 3)
    assert 1 <= usage.rate_tokens <= 5
    assert limits(usage.effective_quota) == (10, 50, 1, 1, 5)
    await tenant.tasks.CreateTask(new_task())
    free = await admin.tenants.GetTenantUsage(Service.GetTenantUsageRequest(name="tenants/default"))
    assert (free.active_tasks, free.queued_tasks, free.rate_tokens) == (0, 1, -1)


async def test_a_validated_tenant_is_neither_created_nor_changed(
    admin: Caller, taskdb: RunningTaskDb
) -> None:
    tables = "SELECT (SELECT array_agg(t.*)::text FROM tenants t), (SELECT count(*) FROM changes)"
    acme = tenant_pb2.Tenant(display_name="Acme", tier=FREE)
    create_request = Service.CreateTenantRequest(tenant_id="acme", tenant=acme, validate_only=True)
    before = await taskdb.rows(tables)
    assert (await admin.tenants.CreateTenant(create_request)).tenant.display_name == "Acme"
    assert await taskdb.rows(tables) == before
    made = await create(admin)
    with pytest.raises(errors.AlreadyExists):
        await admin.tenants.CreateTenant(create_request)
    before = await taskdb.rows(tables)
    changed = tenant_pb2.Tenant(name=made.name, tier=PREMIUM)
    update_request = Service.UpdateTenantRequest(tenant=changed, validate_only=True)
    assert (await admin.tenants.UpdateTenant(update_request)).tenant.tier == PREMIUM
    assert await taskdb.rows(tables) == before
    update_request.tenant.resource_version = 77
    with pytest.raises(errors.ResourceVersionMismatch):
        await admin.tenants.UpdateTenant(update_request)
