"""How the gateway serves: health, drain, sessions, origins, traces, logs, TLS and the settings it refuses."""

from __future__ import annotations

import json
import re
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from services.gateway.tests.echo import Echo, echo_server
from services.gateway.tests.mirror import mirror_of
from taskyard.errors import RateLimited
from taskyard.status import to_status
from taskyard_gateway.answers import Refusal, failed
from taskyard_gateway.settings import GatewaySettings
from taskyard_kit.settings import SettingsError, load
from tests.harness.control_plane import ControlPlane
from tests.harness.gateway import Answered, GatewayService, call, gateway_service
from tests.harness.processes import START_SECONDS

GET_TASK = "/taskyard.v1.TaskService/GetTask"
TASK = "/v1/tenants/default/tasks/t1"
SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with echo_server() as running:
        running.answers[GET_TASK] = [b""]
        yield running


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--listen", "0.0.0.0:7480"], "listen"),
        (["--listen", "unix:/tmp/x"], "listen"),
        (["--taskdb", "10.0.0.1:7420"], "taskdb"),
        (["--scheduler", "db.example.com:7421"], "scheduler"),
        (["--cors-origins", "https://example.com/path"], "cors_origins"),
        (["--session-secret", "short"], "session_secret"),
        (["--keyless-tenant", "t"], "keyless_key"),
        (
            ["--keyless-tenant", "t", "--keyless-key", "k", "--keyless-listen", "0.0.0.0:5000"],
            "keyless_listen",
        ),
        (
            ["--keyless-tenant", "t", "--keyless-key", "k", "--keyless-listen", "10.1.2.3:5000"],
            "keyless_listen",
        ),
    ],
)
def test_unsafe_settings_are_refused_by_name(flags: list[str], named: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(GatewaySettings, flags, {})
    assert str(refused.value).startswith(named)


def test_nothing_allows_callers_without_a_key_beyond_loopback() -> None:
    flags = [
        "--allow-plaintext",
        "--keyless-tenant",
        "t",
        "--keyless-key",
        "k",
        "--keyless-listen",
        "0.0.0.0:1",
    ]
    with pytest.raises(SettingsError, match="keyless_listen"):
        load(GatewaySettings, flags, {})
    shown = repr(load(GatewaySettings, ["--keyless-tenant", "t", "--keyless-key", "ty_secret"], {}))
    assert "ty_secret" not in shown


def test_the_delay_of_a_retry_becomes_a_header() -> None:
    error = RateLimited("tenants/t", "5 per second", retry_after=timedelta(milliseconds=1200))
    response = failed(Refusal(to_status(error)))
    assert (response.status_code, response.headers["retry-after"]) == (429, "2")
    reasons = [detail["@type"].rpartition(".")[2] for detail in json.loads(bytes(response.body))["details"]]
    assert reasons[0] == "ErrorInfo" and "RetryInfo" in reasons


def test_connect_has_errors_of_its_own_form() -> None:
    status = Status(code=1, message="gone")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason="R", domain="d"))
    response = failed(Refusal(status), connect=True)
    members = json.loads(bytes(response.body))
    assert (response.status_code, members["code"], members["message"]) == (499, "canceled", "gone")
    assert (
        members["details"][0]["type"] == "google.rpc.ErrorInfo" and "=" not in members["details"][0]["value"]
    )


def test_health_follows_taskdb_and_a_drain_ends_the_process(plane: ControlPlane, tmp_path: Path) -> None:
    service = gateway_service(plane.taskdbs[0].address, plane.schedulers[0].address, tmp_path)
    service.start()
    try:
        assert call(service, "GET", "/healthz").json == {"status": "SERVING"}
        assert service.process is not None
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(30) == 0
    finally:
        service.stop()
    away = gateway_service("127.0.0.1:1", "127.0.0.1:1", tmp_path)
    away.start(wait=False)
    try:
        away.wait_answer("/livez")
        answer = call(away, "GET", "/healthz")
        assert (answer.status, answer.json) == (503, {"status": "NOT_SERVING"})
        assert call(away, "GET", TASK, key="ty_abcdef_0123456789012345678901").status == 503
    finally:
        away.stop()


def test_the_reference_needs_no_network_and_no_key(echo: Echo, tmp_path: Path) -> None:
    with mirror_of(echo, tmp_path) as gateway:
        page = call(gateway, "GET", "/docs")
        assert page.status == 200 and page.headers["content-type"].startswith("text/html")
        assert b"<script" not in page.body and b"http://" not in page.body and b"https://" not in page.body
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert b"/v1/tenants/{tenant}/tasks" in page.body
        assert call(gateway, "GET", "/openapi.json").json["openapi"] == "3.1.0"


def test_the_console_runs_its_own_modules_only_and_is_not_sent_twice(echo: Echo, tmp_path: Path) -> None:
    with mirror_of(echo, tmp_path) as gateway:
        page = call(gateway, "GET", "/")
        policy = page.headers["content-security-policy"]
        assert page.status == 200 and "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        module = call(gateway, "GET", "/console/main.js")
        assert module.status == 200 and module.headers["content-type"].startswith("text/javascript")
        again = call(gateway, "GET", "/console/main.js", headers={"If-None-Match": module.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        (link,) = re.findall(rb'src="(console/[0-9a-f]{16}/main.js)"', page.body)
        kept = call(gateway, "GET", f"/{link.decode()}")
        assert kept.body == module.body and "immutable" in kept.headers["cache-control"]
        # What a browser may keep is named by its content: never that of another version, nor the document.
        other = call(gateway, "GET", "/console/0123456789abcdef/main.js")
        assert other.body == module.body
        assert {one.headers["cache-control"] for one in (page, module, other)} == {"no-cache"}
        for path in ("/console/", "/console/../app.py", "/console/vendor/LICENSE-htm", "/console/absent.js"):
            assert call(gateway, "GET", path).status == 404, path


def test_a_trace_goes_on_and_keys_stay_out_of_the_log(echo: Echo, tmp_path: Path) -> None:
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with mirror_of(echo, tmp_path) as gateway:
        key = "ty_abcdef_0123456789012345678901secret"
        assert call(gateway, "GET", TASK, key=key, headers={"traceparent": traceparent}).status == 200
        assert echo.asked[GET_TASK].metadata["traceparent"] == traceparent
        assert "x-tenant" not in echo.asked[GET_TASK].metadata
    log = gateway.log.read_text()
    (line,) = [json.loads(line) for line in log.splitlines() if '"GET"' in line and TASK in line]
    assert (line["event"], line["status"], line["path"]) == ("request", 200, TASK)
    assert line["rpc"] == GET_TASK.lstrip("/") and line["trace_id"] == traceparent.split("-")[1]
    assert key not in log


def test_other_origins_are_kept_out_unless_they_are_named(echo: Echo, tmp_path: Path) -> None:
    page = {"Origin": "https://console.example.com", "Access-Control-Request-Method": "GET"}
    with mirror_of(echo, tmp_path) as gateway:
        assert call(gateway, "OPTIONS", TASK, headers=page).status == 405
        answer = call(gateway, "GET", TASK, headers={"Origin": page["Origin"]})
        assert "access-control-allow-origin" not in answer.headers
    with mirror_of(echo, tmp_path, "--cors-origins", page["Origin"]) as gateway:
        answer = call(gateway, "OPTIONS", TASK, headers=page)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, page["Origin"])
        answer = call(gateway, "GET", TASK, headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in answer.headers


def sign_in(gateway: GatewayService, key: str) -> Answered:
    return call(gateway, "POST", "/session", {"key": key})


def test_a_key_is_exchanged_for_a_session_that_pages_of_others_cannot_use(
    plane: ControlPlane, tmp_path: Path
) -> None:
    servers = (plane.taskdbs[0].address, plane.schedulers[0].address)
    first = gateway_service(*servers, tmp_path, "--session-secret", SECRET)
    second = gateway_service(*servers, tmp_path, "--session-secret", SECRET, "--session-duration", "1s")
    try:
        first.start()
        second.start()
        assert sign_in(first, "ty_abcdef_0123456789012345678901").status == 401
        answer = sign_in(first, plane.keys["tenant"])
        cookie = answer.headers["set-cookie"]
        assert answer.status == 200 and "HttpOnly" in cookie and "SameSite=strict" in cookie
        assert plane.keys["tenant"] not in cookie
        session = {"Cookie": cookie.partition(";")[0]}
        tasks = "/v1/tenants/default/tasks"
        # Any replica opens it; a browser's EventSource has no other way.
        assert call(second, "GET", tasks, headers=session).status == 200
        assert call(first, "GET", "/v1/tenants/default:usage", headers=session).status == 200
        assert_only_its_origin_writes(first, tasks, session)
        spoiled = {"Cookie": session["Cookie"][:-4] + "AAAA"}
        assert call(first, "GET", tasks, headers=spoiled).status == 401
        assert "Max-Age=0" in call(first, "DELETE", "/session", headers=session).headers["set-cookie"]
        short = sign_in(second, plane.keys["tenant"]).headers["set-cookie"].partition(";")[0]
        while (answer := call(second, "GET", tasks, headers={"Cookie": short})).status == 200:
            pass
        assert (answer.status, answer.json["code"]) == (401, 16)
    finally:
        first.stop()
        second.stop()


def test_a_sign_in_code_begins_one_session(plane: ControlPlane, tmp_path: Path) -> None:
    servers = (plane.taskdbs[0].address, plane.schedulers[0].address)
    gateway = gateway_service(*servers, tmp_path, "--session-secret", SECRET)
    gateway.start()
    try:
        made = call(gateway, "POST", "/v1/signInCodes", {}, key=plane.keys["tenant"])
        code = {"code": made.json["code"]}
        answer = call(gateway, "POST", "/session", code)
        cookie = answer.headers["set-cookie"]
        assert answer.status == 200 and "HttpOnly" in cookie and made.json["code"] not in cookie
        session = {"Cookie": cookie.partition(";")[0]}
        assert call(gateway, "GET", "/v1/tenants/default/tasks", headers=session).status == 200
        again = call(gateway, "POST", "/session", code)
        assert (again.status, again.json["details"][0]["reason"]) == (401, "SIGN_IN_CODE_INVALID")
        assert "set-cookie" not in again.headers
        for body in ({}, {"key": "a", "code": "b"}, {"code": 7}, [code]):
            assert call(gateway, "POST", "/session", body).status == 400, body
        assert made.json["code"] not in gateway.log_text()
    finally:
        gateway.stop()


def assert_only_its_origin_writes(gateway: GatewayService, path: str, session: dict[str, str]) -> None:
    body: dict[str, Any] = {"spec": {"execution": {"external": {}}}}
    own = {"Origin": f"http://127.0.0.1:{gateway.port}"}
    for headers, status in (
        ({}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        (own, 200),
    ):
        assert call(gateway, "POST", path, body, headers={**session, **headers}).status == status, headers
    form = {**session, **own, "Content-Type": "application/x-www-form-urlencoded"}
    assert call(gateway, "POST", path, json.dumps(body).encode(), headers=form).status == 415


def test_without_a_secret_there_are_no_sessions(echo: Echo, tmp_path: Path) -> None:
    with mirror_of(echo, tmp_path) as gateway:
        assert sign_in(gateway, "ty_abcdef_0123456789012345678901").status == 404


def test_it_serves_tls(echo: Echo, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subprocess.run(
        [*made, "-days", "2", *names, "-keyout", key, "-out", certificate], check=True, capture_output=True
    )
    flags = ("--tls-cert", str(certificate), "--tls-key", str(key))
    service = gateway_service(echo.address, echo.address, tmp_path, *flags)
    service.start(wait=False)
    context = ssl.create_default_context(cafile=str(certificate))
    try:
        answer = https(service, context)
        assert json.load(answer) == {"status": "SERVING"}
    finally:
        service.stop()


def https(service: GatewayService, context: ssl.SSLContext) -> Any:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            return urllib.request.urlopen(
                f"https://localhost:{service.port}/healthz", context=context, timeout=30
            )
        except OSError:
            assert service.process is not None and service.process.poll() is None, service.log_text()
            time.sleep(0.02)
    raise AssertionError(service.log_text())
