"""Hostile input gets the documented 4xx; memory stays bounded and neighbours are served."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from services.gateway.tests.echo import Echo, echo_server
from services.gateway.tests.mirror import mirror_of
from taskyard.v1 import task_service_pb2
from tests.harness.gateway import GatewayService, call

GET_TASK = "/taskyard.v1.TaskService/GetTask"
WAIT_TASK = "/taskyard.v1.TaskService/WaitTask"
WATCH = "/taskyard.v1.TaskService/WatchTasks"
TASKS = "/v1/tenants/default/tasks"
KEY = "ty_abcdef_0123456789012345678901"
HEAD = f"Host: localhost\r\nAuthorization: Bearer {KEY}\r\n"
MIB = 1024 * 1024
# What the process may grow by while it refuses a gigabyte.
ROOM = 64 * MIB


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with echo_server() as running:
        running.answers[GET_TASK] = [task_service_pb2.GetTaskResponse().SerializeToString()]
        running.answers["/taskyard.v1.TaskService/CreateTask"] = [b""]
        running.answers["/taskyard.v1.TaskService/BatchCreateTasks"] = [b""]
        yield running


@pytest.fixture(scope="module")
def gateway(echo: Echo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayService]:
    flags = ("--header-timeout", "3s", "--body-timeout", "1s", "--stall-timeout", "2s")
    with mirror_of(echo, tmp_path_factory.mktemp("hostile"), *flags) as running:
        yield running


def memory(gateway: GatewayService) -> int:
    return int(psutil.Process(gateway.pid).memory_info().rss)


@contextlib.contextmanager
def connected(gateway: GatewayService) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as connection:
        yield connection


def answer_to(connection: socket.socket) -> tuple[int, bytes]:
    """The status and the body of an answer after which the server closes."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


def status_of(gateway: GatewayService, request: bytes) -> int:
    with connected(gateway) as connection:
        connection.sendall(request)
        status, body = answer_to(connection)
        if status >= 400:
            assert set(json.loads(body)) == {"code", "message", "details"}
        return status


def raw(line: str, *headers: str, body: bytes = b"") -> bytes:
    lines = "".join(f"{header}\r\n" for header in headers)
    return f"{line} HTTP/1.1\r\n{HEAD}Connection: close\r\n{lines}\r\n".encode("latin-1") + body


def assert_neighbours_are_served(gateway: GatewayService) -> None:
    began = time.monotonic()
    assert call(gateway, "GET", f"{TASKS}/t1", key=KEY).status == 200
    assert time.monotonic() - began < 5


def test_a_body_of_a_gigabyte_is_refused_by_its_length(gateway: GatewayService) -> None:
    before = memory(gateway)
    head = f"POST {TASKS}"
    assert status_of(gateway, raw(head, f"Content-Length: {1024 * MIB}")) == 413
    assert memory(gateway) - before < ROOM
    assert_neighbours_are_served(gateway)


def test_a_batch_may_have_what_grpc_accepts_and_other_bodies_not(gateway: GatewayService) -> None:
    length = f"Content-Length: {20 * MIB}"
    assert status_of(gateway, raw(f"POST {TASKS}", length)) == 413
    batch = raw(f"POST {TASKS}:batchCreate", length, "Content-Type: application/json")
    with connected(gateway) as connection:
        connection.sendall(batch + b" " * (19 * MIB))
        connection.sendall(b" " * (MIB - 2) + b"{}")
        assert answer_to(connection)[0] == 200
    assert status_of(gateway, raw(f"POST {TASKS}:batchCreate", f"Content-Length: {25 * MIB}")) == 413


def test_a_body_of_a_gigabyte_in_chunks_is_refused_while_it_comes(gateway: GatewayService) -> None:
    before, sent = memory(gateway), 0
    chunk = b"%x\r\n" % MIB + b"x" * MIB + b"\r\n"
    with connected(gateway) as connection:
        connection.sendall(raw(f"POST {TASKS}", "Transfer-Encoding: chunked"))
        with contextlib.suppress(OSError):
            while sent < 1024 * MIB:
                connection.sendall(chunk)
                sent += MIB
    assert 8 * MIB <= sent < 64 * MIB
    assert memory(gateway) - before < ROOM
    assert_neighbours_are_served(gateway)


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (400, raw(f"POST {TASKS}", "Transfer-Encoding: chunked", body=b"zz\r\nbad\r\n0\r\n\r\n")),
        (400, raw(f"POST {TASKS}", "Transfer-Encoding: chunked", "Content-Length: 3", body=b"0\r\n\r\n")),
        (400, raw(f"POST {TASKS}", "Content-Length: 2", "Content-Length: 3", body=b"{}")),
        (400, raw(f"POST {TASKS}", "Content-Length: -1")),
        (400, raw(f"GET {TASKS}/t1", "Authorization: Bearer other")),
        (400, raw(f"GET {TASKS}/t1", "Host: elsewhere")),
        (400, raw(f"GET {TASKS}/t1", "Last-Event-ID: a", "Last-Event-ID: b")),
        (400, raw(f"GET {TASKS}/%ff%fe")),
        (400, raw(f"GET {TASKS}?filter=%ff")),
        (400, raw(f"GET {TASKS}/\xff")),
        (400, raw(f"GET {TASKS}/t1", "X-Odd: a\x01b")),
        (
            400,
            raw(f"POST {TASKS}", "Content-Type: application/json", "Content-Length: 4", body=b'"\xff\xfe"'),
        ),
        (400, raw(f"POST {TASKS}", "Content-Type: application/json", "Content-Length: 2", body=b"{]")),
        (
            400,
            raw(f"POST {TASKS}", "Content-Type: application/json", "Content-Length: 9", body=b'"\\ud800"x'),
        ),
        (400, raw(f"GET {TASKS}/t1?" + "&".join(f"view={n}" for n in range(3)))),
        (400, raw(f"GET {TASKS}/t1?unknown=1")),
        (400, raw(f"GET {TASKS}/t1", "Content-Length: 2", body=b"{}")),
        (415, raw(f"POST {TASKS}", "Content-Type: text/xml", "Content-Length: 2", body=b"{}")),
        (415, raw(f"POST {TASKS}", "Content-Encoding: gzip", "Content-Length: 2", body=b"{}")),
        (431, raw(f"GET {TASKS}/t1", "X-Long: " + "x" * 40_000)),
        (431, raw(f"GET {TASKS}/" + "x" * 40_000)),
        (431, raw(f"GET {TASKS}/t1", *(f"X-{n}: y" for n in range(5000)))),
        (405, raw(f"PUT {TASKS}/t1", "Content-Length: 0")),
        (405, raw(f"OPTIONS {TASKS}/t1")),
        (404, raw("GET /../../etc/passwd")),
        (404, raw("GET /v1//tenants")),
        (404, raw("GET /%2e%2e/v1/tenants")),
        (400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 not http"),
        (400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (400, b"NOPE / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_what_is_no_request_gets_its_status(gateway: GatewayService, status: int, request_: bytes) -> None:
    assert status_of(gateway, request_) == status
    assert_neighbours_are_served(gateway)


def test_deeply_nested_json_is_refused(gateway: GatewayService) -> None:
    for depth in (500, 200_000):
        body = b'{"spec":{"payload":{"json":{"a":' + b"[" * depth + b"]" * depth + b"}}}}"
        answer = call(gateway, "POST", TASKS, body, key=KEY, headers={"Content-Type": "application/json"})
        assert answer.status == 400, answer


def test_an_encoded_slash_stays_within_its_name(echo: Echo, gateway: GatewayService) -> None:
    answer = call(gateway, "GET", f"{TASKS}/..%2f..%2fadmin", key=KEY)
    assert answer.status == 200
    asked = task_service_pb2.GetTaskRequest.FromString(echo.asked[GET_TASK].request)
    assert asked.name == "tenants/default/tasks/..%2F..%2Fadmin"


@pytest.mark.parametrize(
    "begun",
    [
        f"GET {TASKS}/t1 HTTP/1.1\r\nX-Endless: ".encode(),
        raw(f"POST {TASKS}", "Transfer-Encoding: chunked", body=b"0\r\nX-Endless: "),
        raw(f"POST {TASKS}", "Transfer-Encoding: chunked", body=b"1;extension="),
    ],
    ids=["header", "trailer", "chunk extension"],
)
def test_headers_and_trailers_without_an_end_are_cut_off(gateway: GatewayService, begun: bytes) -> None:
    with connected(gateway) as connection:
        connection.sendall(begun)
        connection.sendall(b"x" * 60_000)
        assert answer_to(connection)[0] == 431


def test_a_body_that_does_not_come_is_not_waited_for(gateway: GatewayService) -> None:
    with connected(gateway) as connection:
        connection.sendall(raw(f"POST {TASKS}", "Content-Type: application/json", "Content-Length: 10"))
        assert answer_to(connection)[0] == 408


def test_slow_connections_are_answered_408_and_hold_up_nobody(gateway: GatewayService) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    count = min(5000, hard // 2 - 500)
    before = memory(gateway)
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
            opened.append(connection)
        assert_neighbours_are_served(gateway)
        assert memory(gateway) - before < 4 * ROOM
        assert {answer_to(connection)[0] for connection in opened} == {408}
    finally:
        for connection in opened:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert_neighbours_are_served(gateway)


def test_connections_and_requests_beyond_the_limit_are_answered_503(echo: Echo, tmp_path: Path) -> None:
    flags = ("--max-connections", "3", "--max-requests", "1", "--max-streams", "1")
    with mirror_of(echo, tmp_path, *flags) as gateway, contextlib.ExitStack() as stack:
        echo.answers[WAIT_TASK] = [b""]
        echo.hold(WAIT_TASK)
        waiting = stack.enter_context(connected(gateway))
        waiting.sendall(f"POST {TASKS}/t1:wait HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert echo.begun.wait(20)
        answer = call(gateway, "GET", f"{TASKS}/t1", key=KEY)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json["details"][0]["reason"] == "OVERLOADED"
        for _ in range(2):
            stack.enter_context(connected(gateway))
        assert status_of(gateway, b"") == 503
        waiting.close()
        assert echo.ended.wait(20)


def test_a_client_that_goes_away_ends_the_rpc_at_once(echo: Echo, gateway: GatewayService) -> None:
    step = task_service_pb2.WatchTasksResponse(resume_token="t").SerializeToString()
    for method, line, answers in (
        (WAIT_TASK, f"POST {TASKS}/t1:wait", [b""]),
        (WATCH, f"GET {TASKS}:watch", [step]),
    ):
        echo.answers[method] = answers
        echo.hold(method)
        with connected(gateway) as connection:
            connection.sendall(f"{line} HTTP/1.1\r\n{HEAD}\r\n".encode())
            assert echo.begun.wait(20)
        assert echo.ended.wait(5), method


def test_a_reader_that_reads_nothing_costs_a_bounded_amount_and_is_cut_off(
    echo: Echo, gateway: GatewayService
) -> None:
    step = task_service_pb2.WatchTasksResponse(resume_token="t")
    step.events.add().task.metadata.labels["large"] = "x" * MIB
    echo.answers[WATCH] = [step.SerializeToString()]
    echo.hold(WATCH)
    before = memory(gateway)
    with connected(gateway) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(f"GET {TASKS}:watch HTTP/1.1\r\n{HEAD}\r\n".encode())
        assert echo.ended.wait(30)
    assert echo.sent < 100
    assert memory(gateway) - before < 2 * ROOM


def test_a_large_answer_does_not_hold_up_a_small_one(echo: Echo, gateway: GatewayService) -> None:
    listed = task_service_pb2.ListTasksResponse()
    for _ in range(20_000):
        listed.tasks.add().metadata.labels.update({"a": "b", "c": "d"})
    echo.answers["/taskyard.v1.TaskService/ListTasks"] = [listed.SerializeToString()]
    slowest = 0.0
    done = threading.Event()
    started = time.monotonic()

    def large() -> None:
        try:
            assert len(call(gateway, "GET", TASKS, key=KEY).json["tasks"]) == 20_000
        finally:
            done.set()

    thread = threading.Thread(target=large)
    thread.start()
    while not done.is_set():
        began = time.monotonic()
        assert call(gateway, "GET", f"{TASKS}/t1", key=KEY).status == 200
        slowest = max(slowest, time.monotonic() - began)
    thread.join()
    # Behind the large one it would take most of that one's time, however busy the host is.
    assert slowest < (time.monotonic() - started) / 2
