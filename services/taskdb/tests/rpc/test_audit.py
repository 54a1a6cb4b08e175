"""ListAuditEvents: actor, event and resource, newest first, filtered by every field."""

from collections.abc import Callable
from typing import Any

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from services.taskdb.tests.yard import Yard, failed, started, succeeded, with_start
from taskyard.errors import FilterInvalid, NotFound, PageTokenInvalid
from taskyard.v1 import audit_pb2, common_pb2, task_service_pb2
from taskyard_taskdb.domain.change import ChangeEvent
from taskyard_taskdb.domain.task import Actor
from taskyard_taskdb.domain.words import ActorType
from taskyard_taskdb.storage.audit import listing as audit_listing
from taskyard_taskdb.storage.change_log.append import append_change
from taskyard_taskdb.storage.transition.load import database_time

Made = Callable[..., task_service_pb2.CreateTaskRequest]


async def listed(
    caller: Any, filter: str = "", parent: str = "tenants/default", page_size: int = 0, token: str = ""
) -> task_service_pb2.ListAuditEventsResponse:
    request = task_service_pb2.ListAuditEventsRequest(
        parent=parent, filter=filter, page_size=page_size, page_token=token
    )
    response: task_service_pb2.ListAuditEventsResponse = await caller.tasks.ListAuditEvents(request)
    return response


async def events(caller: Any, filter: str = "", **options: Any) -> list[audit_pb2.AuditEvent]:
    """All pages."""
    found: list[audit_pb2.AuditEvent] = []
    token = ""
    while True:
        response = await listed(caller, filter, token=token, **options)
        found += response.audit_events
        token = response.next_page_token
        if not token:
            return found


async def short_runs(yard: Yard, count: int) -> list[str]:
    """Tasks whose start and success were reported together."""
    await yard.create(count)
    runner, _ = await yard.hello()
    taken = (await yard.claim(runner)).assignments
    await yard.report(runner, *(with_start(succeeded(assignment)) for assignment in taken))
    return [assignment.lease.task for assignment in taken]


@pytest.mark.parametrize("page_size", [1, 2, 100])
async def test_a_start_and_the_success_that_came_with_it_are_two_audit_events(
    tenant: Any, yard: Yard, taskdb: RunningTaskDb, page_size: int
) -> None:
    names = await short_runs(yard, 3)
    assert await taskdb.rows("SELECT count(*) FROM changes WHERE resource_kind = 1") == [(3 * 3,)]
    found = await events(tenant, page_size=page_size)
    own = [event for event in found if event.resource in names]
    assert len({event.name for event in own}) == len(own) == 3 * 4
    for name in names:
        ended, begun, *_ = [event for event in own if event.resource == name]
        assert (ended.event_type, begun.event_type) == ("task.succeeded", "task.started")
        assert (ended.resource_version, begun.resource_version) == (4, 3)
        assert (ended.details["from_phase"], begun.details["from_phase"]) == ("RUNNING", "SCHEDULED")
        assert begun.details["to_phase"] == "RUNNING"


async def test_filters_see_a_start_and_the_success_that_came_with_it_apart(tenant: Any, yard: Yard) -> None:
    names = await short_runs(yard, 2)
    for wanted in ("task.started", "task.succeeded"):
        found = await events(tenant, f'event_type = "{wanted}"', page_size=1)
        assert sorted(event.resource for event in found) == sorted(names)
        assert {event.event_type for event in found} == {wanted}
        others = await events(tenant, f'event_type != "{wanted}" AND resource = "{names[0]}"')
        assert len(others) == 3 and wanted not in {event.event_type for event in others}
    either = 'event_type = "task.started" OR event_type = "task.created"'
    assert len(await events(tenant, either, page_size=1)) == 4


async def test_audit_of_a_task_names_actor_and_event_newest_first(
    tenant: Any, yard: Yard, make_task: Made
) -> None:
    created = await tenant.tasks.CreateTask(make_task(task_id="a", request_id="r-1"))
    await tenant.tasks.CreateTask(make_task(task_id="b"))
    runner, _ = await yard.hello()
    assignments = {a.lease.task: a for a in (await yard.claim(runner)).assignments}
    mine = assignments[created.task.name]
    await yard.report(runner, started(mine), succeeded(mine, exit_code=0))
    found = await events(tenant, f'resource = "{created.task.name}"')
    assert [event.event_type for event in found] == [
        "task.succeeded",
        "task.started",
        "task.scheduled",
        "task.created",
    ]
    assert [event.actor.type for event in found] == [
        common_pb2.ACTOR_TYPE_RUNNER,
        common_pb2.ACTOR_TYPE_RUNNER,
        common_pb2.ACTOR_TYPE_SCHEDULER,
        common_pb2.ACTOR_TYPE_USER,
    ]
    assert found[0].actor.id == runner.id and found[2].actor.id == yard.scheduler_id
    assert [event.resource_version for event in found] == [4, 3, 2, 1]
    assert found[3].request_id == "r-1"
    assert dict(found[0].details) == {
        "from_phase": "RUNNING",
        "to_phase": "SUCCEEDED",
        "generation": 1,
        "attempt": 1,
        "runner": f"runners/{runner.id}",
        "exit_code": 0,
    }
    times = [event.time.ToNanoseconds() for event in found]
    assert times == sorted(times, reverse=True)


async def test_the_trail_stays_when_the_task_is_deleted(tenant: Any, make_task: Made) -> None:
    name = (await tenant.tasks.CreateTask(make_task(task_id="a"))).task.name
    await tenant.tasks.CancelTask(task_service_pb2.CancelTaskRequest(name=name, reason="not needed"))
    await tenant.tasks.DeleteTask(task_service_pb2.DeleteTaskRequest(name=name))
    found = await events(tenant, f'resource = "{name}"')
    assert [event.event_type for event in found] == ["task.deleted", "task.cancelled", "task.created"]
    assert found[1].details["reason"] == "not needed"


async def test_events_are_found_by_type_actor_time_and_request(
    tenant: Any, yard: Yard, make_task: Made
) -> None:
    for index in range(4):
        await tenant.tasks.CreateTask(make_task(task_id=f"t{index}", request_id=f"q-{index}"))
    runner, _ = await yard.hello()
    assignments = list((await yard.claim(runner)).assignments)
    await yard.report(runner, *(started(a) for a in assignments))
    await yard.report(runner, failed(assignments[0], "BROKEN", permanent=True))

    async def ids(filter: str) -> list[str]:
        return [event.resource.rpartition("/")[2] for event in await events(tenant, filter)]

    assert await ids('event_type = "task.created"') == ["t3", "t2", "t1", "t0"]
    assert len(await ids('event_type = "task.*" AND actor.type = RUNNER')) == 5
    assert len(await ids(f'actor.id = "{runner.id}" AND event_type = "task.started"')) == 4
    assert await ids('event_type = "task.failed" OR event_type = "task.exhausted"') == ["t0"]
    assert await ids('request_id = "q-2"') == ["t2"]
    assert await ids('resource = "tenants/default/tasks/t*" AND NOT event_type != "task.failed"') == ["t0"]
    middle = (await events(tenant, 'request_id = "q-1"'))[0].time.ToJsonString()
    assert await ids(f'event_type = "task.created" AND time >= "{middle}"') == ["t3", "t2", "t1"]
    assert await ids(f'event_type = "task.created" AND time < "{middle}"') == ["t0"]


async def test_pages_are_complete_and_do_not_overlap(
    tenant: Any, make_task: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(25):
        await tenant.tasks.CreateTask(make_task(task_id=f"t{index:02}"))
    expected = [f"t{index:02}" for index in reversed(range(25))]
    # Windows smaller than a page: many of them make one, and each can be the last that there is time for.
    for near, far, patience in ((20_000, 1_000_000, 0.5), (3, 4, 9.0), (3, 4, 0.0)):
        monkeypatch.setattr(audit_listing, "NEAR", near)
        monkeypatch.setattr(audit_listing, "FAR", far)
        monkeypatch.setattr(audit_listing, "PAGE_SECONDS", patience)
        found = await events(tenant, 'event_type = "task.created"', page_size=7)
        assert [event.resource.rpartition("/")[2] for event in found] == expected


async def test_a_tenant_sees_its_own_events_only(
    taskdb: RunningTaskDb, tenant: Any, admin: Any, make_task: Made
) -> None:
    await taskdb.add_tenant("other")
    other = await taskdb.caller(tenant_id="other")
    await tenant.tasks.CreateTask(make_task(task_id="a"))
    await other.tasks.CreateTask(make_task("tenants/other", task_id="b"))
    assert {event.resource for event in await events(tenant, parent="tenants/-")} == {
        "tenants/default/tasks/a"
    }
    assert await events(tenant, 'resource = "tenants/other/tasks/b"') == []
    with pytest.raises(NotFound):
        await listed(tenant, parent="tenants/other")
    everything = await events(admin, 'event_type = "task.created"', parent="tenants/-")
    assert [event.name.split("/")[1] for event in everything] == ["other", "default"]


async def test_events_of_runners_and_administration_are_named_by_their_resource(
    taskdb: RunningTaskDb, admin: Any, yard: Yard
) -> None:
    await yard.hello("host-1")
    user = Actor(ActorType.USER, "root-key")
    logged = (
        (ChangeEvent.TENANT_UPDATED, "default", "default", "tenants/default"),
        (ChangeEvent.TASK_TYPE_CREATED, "default", "resize", "tenants/default/taskTypes/resize"),
        (ChangeEvent.API_KEY_REVOKED, "system", "k1", "apiKeys/k1"),
        (ChangeEvent.QUARANTINE_CREATED, "default", "ab12", "tenants/default/quarantines/ab12"),
    )
    for event, tenant_id, resource_id, name in logged:
        async with taskdb.pool.transaction() as tx:
            now = await database_time(tx)
            await append_change(
                tx, event, tenant_id, resource_id, user, now, version=2, details={"by": "hand"}
            )
        [found] = await events(admin, f'resource = "{name}"', parent="tenants/-")
        assert (found.resource, found.event_type, found.actor.id) == (name, event.word, "root-key")
        assert (found.resource_version, found.details["by"]) == (2, "hand")
    runner = await events(admin, 'resource = "runners/host-1"', parent="tenants/system")
    assert [event.event_type for event in runner] == ["runner.connected", "runner.registered"]


@pytest.mark.covers("ListAuditEvents", "FILTER_INVALID")
@pytest.mark.parametrize(
    "filter",
    ['resource = "a"', 'resource = "tenants/a/logs/b"', 'event_type = "task.made"', "phase = 1", "time = 5"],
)
async def test_invalid_audit_filter_is_rejected(tenant: Any, filter: str) -> None:
    with pytest.raises(FilterInvalid):
        await listed(tenant, filter)


@pytest.mark.covers("ListAuditEvents", "PAGE_TOKEN_INVALID")
async def test_a_token_of_another_query_is_refused(tenant: Any, make_task: Made) -> None:
    for index in range(3):
        await tenant.tasks.CreateTask(make_task(task_id=f"t{index}"))
    token = (await listed(tenant, page_size=1)).next_page_token
    assert token
    for other in ("garbage", token):
        with pytest.raises(PageTokenInvalid):
            await listed(tenant, 'event_type = "task.created"', token=other)
