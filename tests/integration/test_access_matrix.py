"""Every RPC × every kind of principal × own, foreign and missing objects, from descriptors and policies.

A new RPC fails here until it has a request in tests/harness/rpc_requests.py, and its server does not start
without a policy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from taskyard.v1 import api_key_pb2, api_key_service_pb2
from taskyard_kit.auth import Kind, Policy
from taskyard_scheduler.rpc.policies import POLICIES as SCHEDULER_POLICIES
from taskyard_taskdb.access_policy import POLICIES as TASKDB_POLICIES
from tests.fuzz.rpc import service_of
from tests.fuzz.world import add_key
from tests.harness.any_rpc import Answer
from tests.harness.control_plane import ControlPlane, control_plane
from tests.harness.rpc_requests import REQUESTS, Objects, messages_of, method_of
from tests.integration.access_world import FOREIGN, NOWHERE, OWN, SECRET, AccessWorld, Caller, missing

if TYPE_CHECKING:
    from tests.harness.postgres import PostgresServer

POLICIES = {**TASKDB_POLICIES, **SCHEDULER_POLICIES}
# What the leader folds from the change log and from ended runs, some time after it happened.
CHANGING = {"group_deltas", "tenant_usage", "task_counts", "task_minutes", "task_durations"}
TENANTS_TABLES = """
    SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
    WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
"""
DEFECTS = {"INTERNAL", "UNKNOWN", "UNIMPLEMENTED", "DEADLINE_EXCEEDED", "UNAVAILABLE"}
# A key for any runner may use an id that nobody has, but not that of another tenant's runner.
NAMED_BY_ITSELF = {"/taskyard.v1.RunnerLinkService/Connect", "/taskyard.v1.WorkService/ClaimTasks"}
# They make and end what other cells need.
FIRST, LAST = ("Connect", "OpenSession"), ("CloseSession", "DeleteRunner", "DeleteTenant")


@pytest.fixture
def plane(postgres_server: PostgresServer, migrated_template: str) -> Iterator[ControlPlane]:
    with control_plane(postgres_server, migrated_template) as running:
        yield running


@pytest.fixture
async def world(plane: ControlPlane) -> AsyncIterator[AccessWorld]:
    made = AccessWorld(service_of(plane))
    await made.prepare()
    yield made
    await made.service.close()


def rpcs() -> list[str]:
    """All RPCs: those that make what others need first, those that end it last."""

    def turn(path: str) -> int:
        rpc = path.rpartition("/")[2]
        return FIRST.index(rpc) - 10 if rpc in FIRST else LAST.index(rpc) + 10 if rpc in LAST else 0

    return sorted(REQUESTS, key=turn)


def expected(policy: Policy, caller: Caller) -> str:
    """The code of every answer to a caller that the policy excludes; empty if it does not."""
    if policy.open:
        return ""
    if caller.kind is None:
        return "UNAUTHENTICATED"
    if caller.kind not in policy.kinds or (policy.scope and not caller.writes):
        return "PERMISSION_DENIED"
    return ""


def changed_rows(before: Mapping[str, list[Any]], after: Mapping[str, list[Any]]) -> list[str]:
    """The rows that were changed, with their table."""
    return [f"{table}: {row}" for table, new in after.items() for row in new if row not in before[table]]


def foreign_rows(url: str) -> dict[str, list[Any]]:
    """All that the database has of the foreign tenant, by table."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(TENANTS_TABLES).fetchall()
        return {
            table: connection.execute(f"SELECT * FROM {table} WHERE tenant_id = %s", (FOREIGN,)).fetchall()
            for (table,) in tables
            if table not in CHANGING
        }


def refused(path: str, answer: Answer) -> bool:
    """Whether nothing was done: an error, or one for each item."""
    if not answer.served:
        return True
    kind: Any = message_factory.GetMessageClass(method_of(path).output_type)
    response: Any = kind.FromString(answer.responses[0]) if answer.responses else kind()
    match path.rpartition("/")[2]:
        case "RenewWork":
            return bool(response.verdicts)
        case "ReportWork":
            return all(result.error.code for result in response.results)
        case "AppendWorkLogs":
            return all(status.code for status in response.results)
        case "BatchCancelTasks" | "BatchRetryTasks" | "BatchResetTasks":
            return all(result.status.code for result in response.results)
        case "BatchCreateTasks":
            return any(result.HasField("error") for result in response.results)
    return False


def names_somebody(message: Message, objects: Objects) -> bool:
    """Whether a request refers to anything of these objects."""
    named = (objects.tenant, objects.api_key, *named_by_mark(objects))
    return any(any(part in named for part in text.split("/")) for _, text in texts(message))


def texts(message: Message, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """All texts in a message with their places."""
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        for index, item in enumerate(value) if field.is_repeated else [(None, value)]:
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                yield from texts(item, (*path, (field.name, index)))
            elif field.type == FieldDescriptor.TYPE_STRING:
                yield (*path, (field.name, index)), item


@pytest.mark.timeout(400)
async def test_every_rpc_answers_each_principal_as_its_policy_says(
    plane: ControlPlane, world: AccessWorld
) -> None:
    before, wrong, served, cells = foreign_rows(plane.url), list[str](), set[str](), 0
    for path in rpcs():
        for caller in world.callers:
            excluded = expected(POLICIES[path], caller)
            own = world.objects[OWN]
            if not excluded and (POLICIES[path].scope or caller.kind in (Kind.RUNNER, Kind.SCHEDULER)):
                own = await world.fresh(OWN, leased=caller.kind in (Kind.RUNNER, Kind.SCHEDULER))
            for whose, objects in ((OWN, own), ("missing", missing(own)), (FOREIGN, world.objects[FOREIGN])):
                if whose == FOREIGN and not excluded and not caller.bound:
                    continue
                cells += 1
                answer = await world.call(caller, path, objects)
                cell = f"{path} {caller.name} {whose}: {answer.code} {answer.message[:200]}"
                if excluded:
                    wrong += [cell] if answer.code != excluded else []
                    continue
                if answer.code in DEFECTS or (answer.code == "UNAUTHENTICATED" and path not in ASKED_ABOUT):
                    wrong.append(cell)
                if whose == OWN and answer.served:
                    served.add(path)
                if whose == FOREIGN and path in NAMED_BY_ITSELF:
                    wrong += [cell] if answer.code != "PERMISSION_DENIED" else []
                elif whose == FOREIGN:
                    wrong += [f"{cell}: {problem}" for problem in await _leaks(world, caller, path, answer)]
    print(f"{cells} cells of {len(rpcs())} RPCs")
    assert not wrong, "\n".join(wrong)
    assert changed_rows(before, foreign_rows(plane.url)) == []
    assert sorted(set(rpcs()) - served) == sorted(UNSERVED)


REDEEM = "/taskyard.v1.ApiKeyService/RedeemSignInCode"
# They answer UNAUTHENTICATED for the key or the code that they are asked about.
ASKED_ABOUT = {"/taskyard.v1.SessionService/VerifyApiKey", REDEEM}
# A healthy suite has no quarantine, no session of the epoch of the request, no such code, and the task of the
# request is not embedded and has no children.
UNSERVED = {
    "/taskyard.v1.LeaseService/ReadChildOutcomes",
    "/taskyard.v1.RunnerLinkService/FetchChildOutcomes",
    "/taskyard.v1.EmbeddedService/ClaimEmbeddedTask",
    "/taskyard.v1.AdminService/ReleaseQuarantine",
    "/taskyard.v1.SessionService/CloseSession",
    REDEEM,
}


async def _leaks(world: AccessWorld, caller: Caller, path: str, answer: Answer) -> list[str]:
    """How an answer about another tenant's objects differs from one about objects that do not exist."""
    problems = ["shows the other tenant"] if answer.contains(SECRET) else []
    messages = messages_of(path, world.objects[FOREIGN])
    if any(names_somebody(one, world.objects[FOREIGN]) for one in messages) and not refused(path, answer):
        problems.append("was served")
    nowhere = await world.call(caller, path, world.objects[NOWHERE])
    if (answer.code, answer.reason) != (nowhere.code, nowhere.reason):
        problems.append(f"a missing tenant is {nowhere.code} {nowhere.reason} {nowhere.message[:200]}")
    elif answer.message.replace(FOREIGN, NOWHERE) != nowhere.message and "apiKeys/" not in nowhere.message:
        problems.append(f"a missing tenant is {nowhere.message[:200]}")
    return problems


def swapped(messages: list[Message], own: Objects, foreign: Objects) -> Iterator[tuple[str, list[Message]]]:
    """The messages with one name of OWN replaced by the foreign one, for each name in them."""
    names = {own.tenant: foreign.tenant, own.api_key: foreign.api_key, own.runner: foreign.runner}
    for number, message in enumerate(messages):
        for place, text in texts(message):
            parts = text.split("/")
            if not any(part in names for part in parts):
                continue
            changed = "/".join(names.get(part, part) for part in parts)
            if text == own.lease.task:
                changed = foreign.lease.task
            elif parts[-1] in (
                own.task,
                own.ended,
                own.external,
                own.task_type,
                own.schedule,
                own.group,
                own.limit,
            ):
                changed = changed.replace(own.task.partition("-")[2], foreign.task.partition("-")[2])
            copies = [type(one).FromString(one.SerializeToString()) for one in messages]
            _put(copies[number], place, changed)
            yield ".".join(name for name, _ in place), copies


def named_by_mark(o: Objects) -> tuple[str, ...]:
    """The ids that end with the mark of their tenant's objects."""
    return (o.task, o.ended, o.external, o.task_type, o.schedule, o.group, o.limit)


def _put(message: Any, place: tuple[Any, ...], text: str) -> None:
    for name, index in place[:-1]:
        message = getattr(message, name) if index is None else getattr(message, name)[index]
    name, index = place[-1]
    if index is None:
        setattr(message, name, text)
    else:
        getattr(message, name)[index] = text


async def test_no_nested_name_of_another_tenant_is_served(plane: ControlPlane, world: AccessWorld) -> None:
    before, wrong, tried = foreign_rows(plane.url), list[str](), 0
    foreign = world.objects[FOREIGN]
    for caller in world.callers:
        for path in rpcs():
            if expected(POLICIES[path], caller) or not caller.bound or path.endswith("/Connect"):
                continue
            own = world.objects[OWN]
            for place, messages in swapped(messages_of(path, own), own, foreign):
                tried += 1
                answer = await world.send(caller, path, messages, OWN)
                if not refused(path, answer) or answer.contains(SECRET) or answer.code in DEFECTS:
                    wrong.append(f"{path} {caller.name} {place}: {answer.code} {answer.message[:200]}")
    print(f"{tried} names")
    assert not wrong, "\n".join(wrong)
    assert changed_rows(before, foreign_rows(plane.url)) == []
    assert tried >= 60


async def test_type_of_another_tenant_is_unknown_and_its_keys_cannot_be_made(world: AccessWorld) -> None:
    tenant, foreign = world.callers[0], world.objects[FOREIGN]
    assert tenant.name == "tenant"
    create: Any = messages_of("/taskyard.v1.TaskService/CreateTask", world.objects[OWN])[0]
    create.task.spec.ClearField("execution")
    create.task.spec.task_type = foreign.task_type
    answer = await world.send(tenant, "/taskyard.v1.TaskService/CreateTask", [create], OWN)
    assert (answer.code, answer.reason) == ("NOT_FOUND", "TASK_TYPE_UNKNOWN")
    for change in (
        {"kind": api_key_pb2.PRINCIPAL_KIND_ADMIN},
        {"kind": api_key_pb2.PRINCIPAL_KIND_SCHEDULER},
        {
            "kind": api_key_pb2.PRINCIPAL_KIND_RUNNER,
            "runner_scope": api_key_pb2.RunnerScope(tenants=[FOREIGN]),
        },
        {"kind": api_key_pb2.PRINCIPAL_KIND_RUNNER, "runner_scope": api_key_pb2.RunnerScope(tenants=["*"])},
    ):
        request = api_key_service_pb2.CreateApiKeyRequest(api_key=api_key_pb2.ApiKey(**change))
        answer = await world.send(tenant, "/taskyard.v1.ApiKeyService/CreateApiKey", [request], OWN)
        assert answer.code in ("PERMISSION_DENIED", "NOT_FOUND", "INVALID_ARGUMENT"), answer


async def test_tokens_of_another_tenant_are_refused(world: AccessWorld) -> None:
    own, foreign = world.objects[OWN], world.objects[FOREIGN]
    stranger = Caller("stranger", (await add_key(world.service, tenant=FOREIGN)).secret, Kind.TENANT)
    await world.fresh(FOREIGN)
    tried = []
    for path, policy in POLICIES.items():
        method = method_of(path)
        for field, issued in (("page_token", "next_page_token"), ("resume_token", "resume_token")):
            if field not in method.input_type.fields_by_name or Kind.TENANT not in policy.kinds:
                continue
            theirs: Any = messages_of(path, foreign)[0]
            mine: Any = messages_of(path, own)[0]
            if field == "page_token":
                theirs.page_size = mine.page_size = 1
            answer = await world.send(stranger, path, [theirs], FOREIGN)
            kind: Any = message_factory.GetMessageClass(method.output_type)
            tokens = [getattr(kind.FromString(one), issued) for one in answer.responses]
            if not any(tokens):
                continue
            if path.endswith("/WatchTasks"):
                mine.ClearField("snapshot")
            setattr(mine, field, next(token for token in reversed(tokens) if token))
            used = await world.send(world.callers[0], path, [mine], OWN)
            assert used.code == "INVALID_ARGUMENT" and not used.contains(SECRET), f"{path} {field}: {used}"
            tried.append(path.rpartition("/")[2])
    assert {"ListTasks", "ListAuditEvents", "WatchTasks", "ListTaskTypes", "ListApiKeys"} <= set(tried), tried
