"""Every RPC with an http rule, generated from the descriptors: what HTTP carries is what gRPC carries."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from services.gateway.tests.echo import Echo, echo_server
from services.gateway.tests.filler import fill, take_apart
from services.gateway.tests.mirror import mirror_of
from taskyard import v1
from taskyard.compat import v1 as compat
from taskyard.status import DETAILS_KEY
from taskyard_gateway.answers import HTTP_STATUS
from taskyard_gateway.contract import SCHEDULER, Rpc, rpcs
from taskyard_gateway.routes import routes
from tests.harness.control_plane import ControlPlane
from tests.harness.gateway import GatewayService, call

ROUTES = {f"{route.method} {route.template.text}": route for route in routes()}
UNARY = {name: route for name, route in ROUTES.items() if not route.rpc.streams}
STREAMS = {name: route for name, route in ROUTES.items() if route.rpc.streams}
KEY = "ty_abcdef_0123456789012345678901"
CHOICES = range(6)


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with echo_server() as running:
        yield running


@pytest.fixture(scope="module")
def mirror(echo: Echo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayService]:
    """A gateway in front of the echo."""
    with mirror_of(echo, tmp_path_factory.mktemp("mirror")) as running:
        yield running


def test_every_rpc_with_a_rule_has_a_route() -> None:
    ruled = {path for package in (v1, compat) for path in ruled_in(package)}
    assert {route.rpc.path for route in ROUTES.values()} == ruled


def ruled_in(package: ModuleType) -> Iterator[str]:
    """The path of each RPC of the contract that has an http rule, whether the gateway offers it or not."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name.endswith("_service_pb2"):
            for service in importlib.import_module(found.name).DESCRIPTOR.services_by_name.values():
                yield from (
                    rpc.path for rpc in (Rpc(method, "") for method in service.methods) if list(rpc.rules())
                )


def read(text: bytes, rpc: Rpc) -> Message:
    return json_format.Parse(text, rpc.response())


@pytest.mark.parametrize("name", UNARY)
def test_request_and_response_are_carried_whole(echo: Echo, mirror: GatewayService, name: str) -> None:
    route = ROUTES[name]
    for choice in CHOICES:
        request = fill(route.rpc.request(), choice)
        path, body = take_apart(route, request)
        response = fill(route.rpc.response(), choice)
        echo.answers[route.rpc.path] = [response.SerializeToString()]
        headers = {"Content-Type": "application/json"} if body is not None else {}
        answer = call(mirror, route.method, path, body, key=KEY, headers=headers)
        assert answer.status == 200, answer
        asked = echo.asked.pop(route.rpc.path)
        assert route.rpc.request.FromString(asked.request) == request
        assert asked.metadata["authorization"] == f"Bearer {KEY}"
        assert read(answer.body, route.rpc) == response


@pytest.mark.parametrize("path", [rpc.path for rpc in rpcs() if not rpc.streams])
def test_connect_carries_json_and_binary(echo: Echo, mirror: GatewayService, path: str) -> None:
    (rpc,) = [rpc for rpc in rpcs() if rpc.path == path]
    request, response = fill(rpc.request(), 1), fill(rpc.response(), 1)
    echo.answers[path] = [response.SerializeToString()]
    text = json_format.MessageToJson(request).encode()
    for body, kind in ((text, "application/json"), (request.SerializeToString(), "application/proto")):
        answer = call(mirror, "POST", path, body, key=KEY, headers={"Content-Type": kind})
        assert (answer.status, answer.headers["content-type"]) == (200, kind)
        assert rpc.request.FromString(echo.asked.pop(path).request) == request
        found = read(answer.body, rpc) if kind.endswith("json") else rpc.response.FromString(answer.body)
        assert found == response


@pytest.mark.parametrize("name", STREAMS)
def test_streams_are_carried_whole_as_events_and_as_lines(
    echo: Echo, mirror: GatewayService, name: str
) -> None:
    route = ROUTES[name]
    request = fill(route.rpc.request(), 0)
    path, body = take_apart(route, request)
    responses = [fill(route.rpc.response(), choice) for choice in range(3)]
    if route.rpc.resumable:
        for place, response in enumerate(responses):
            setattr(response, "resume_token", f"token-{place}")  # noqa: B010  the type is not known here
            response.ClearField("closing")
    echo.answers[route.rpc.path] = [response.SerializeToString() for response in responses]
    lines = call(mirror, route.method, path, body, key=KEY, headers={"Accept": "application/x-ndjson"})
    assert [read(line, route.rpc) for line in lines.body.splitlines()] == responses
    assert route.rpc.request.FromString(echo.asked.pop(route.rpc.path).request) == request
    events = call(mirror, route.method, path, body, key=KEY)
    assert events.headers["content-type"] == "text/event-stream"
    parsed = [dict(line.split(": ", 1) for line in event.splitlines()) for event in events_of(events.body)]
    assert parsed[0] == {"retry": "1000"} and parsed[-1] == {"event": "end", "data": "{}"}
    assert [read(event["data"].encode(), route.rpc) for event in parsed[1:-1]] == responses
    if route.rpc.resumable:
        assert [event["id"] for event in parsed[1:-1]] == ["token-0", "token-1", "token-2"]


def events_of(body: bytes) -> list[str]:
    return body.decode().strip().split("\n\n")


@pytest.mark.parametrize("name", [name for name, route in STREAMS.items() if route.rpc.resumable])
def test_the_last_event_id_is_the_resume_token(echo: Echo, mirror: GatewayService, name: str) -> None:
    route = ROUTES[name]
    echo.answers[route.rpc.path] = []
    request = route.rpc.request()
    path, _ = take_apart(route, request)
    query = (
        "?snapshot=true&resumeToken=of-the-page" if "snapshot" in request.DESCRIPTOR.fields_by_name else ""
    )
    call(mirror, "GET", path + query, key=KEY, headers={"Last-Event-ID": "token-7"})
    asked: Any = route.rpc.request.FromString(echo.asked.pop(route.rpc.path).request)
    assert asked.resume_token == "token-7" and not getattr(asked, "snapshot", False)


# The real servers


def grpc_answer(plane: ControlPlane, rpc: Rpc, request: Message, key: str) -> tuple[Message | None, Any]:
    """The response of a call by gRPC, or its error."""
    server = plane.schedulers[0] if rpc.upstream == SCHEDULER else plane.taskdbs[0]
    with grpc.insecure_channel(server.address) as channel:
        ask = channel.unary_unary(
            rpc.path,
            request_serializer=rpc.request.SerializeToString,
            response_deserializer=rpc.response.FromString,
        )
        try:
            return ask(request, metadata=(("authorization", f"Bearer {key}"),), timeout=30), None
        except grpc.RpcError as error:
            return None, error


# Called twice, these answer differently by design.
NEW_EACH_TIME = {
    "CreateGlobalTask",
    "CreateApiKey",
    "CreateSignInCode",
    "GetSystemStatus",
    "RunDoctor",
    "GetTaskStats",
    "ListRunners",
}


@pytest.mark.parametrize("name", UNARY)
def test_the_real_servers_answer_as_by_grpc(plane: ControlPlane, gateway: GatewayService, name: str) -> None:
    route = ROUTES[name]
    request = route.rpc.request()
    path, body = take_apart(route, request)
    headers = {"Content-Type": "application/json"} if body is not None else {}
    for kind in ("tenant", "admin", "runner"):
        key = plane.keys[kind]
        response, error = grpc_answer(plane, route.rpc, request, key)
        answer = call(gateway, route.method, path, body, key=key, headers=headers)
        if error is not None:
            assert_same_error(answer.status, answer.json, error)
        elif route.rpc.descriptor.name in NEW_EACH_TIME:
            assert answer.status == 200
        else:
            assert answer.status == 200, answer
            assert without_tokens(read(answer.body, route.rpc)) == without_tokens(response)


def without_tokens(message: Any) -> Any:
    """The message without what is made anew for every answer."""
    for field in ("resume_token", "server_time", "observe_time"):
        if field in message.DESCRIPTOR.fields_by_name:
            message.ClearField(field)
    return message


def assert_same_error(status: int, answer: dict[str, Any], error: Any) -> None:
    code = error.code().value[0]
    assert (status, answer["code"], answer["message"]) == (HTTP_STATUS[code], code, error.details())
    carried = dict(error.trailing_metadata())
    assert (DETAILS_KEY in carried) == bool(answer["details"])
    assert all("@type" in detail for detail in answer["details"])
    assert json.dumps(answer["details"])


def test_without_a_key_nothing_is_answered(gateway: GatewayService) -> None:
    for route in UNARY.values():
        path, body = take_apart(route, route.rpc.request())
        answer = call(gateway, route.method, path, body, headers={"Content-Type": "application/json"})
        assert (answer.status, answer.json["code"]) == (401, 16), route
