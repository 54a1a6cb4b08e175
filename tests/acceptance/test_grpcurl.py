"""Any gRPC tool can use the servers: reflection and calls with a key, nothing without; health is open."""

import json
import re
import shutil
import subprocess
import uuid
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.acceptance.suite import BIN, ROOT, Ended, Suite, client_environment

SERVERS = ["address", "scheduler"]
SERVICES = {"address": "taskyard.v1.TaskService", "scheduler": "taskyard.v1.ExplainService"}
UNAUTHENTICATED = 16


def buf_curl(suite: Suite, path: str, *flags: str, key: str | None = None, server: str = "address") -> Ended:
    headers: list[str] = []
    if key is not None:
        headers = ["-H", f"authorization: Bearer {key}", "--reflect-header", f"authorization: Bearer {key}"]
    url = f"http://{suite.context[server]}{path}"
    ended = subprocess.run(
        [BIN / "buf", "curl", "--protocol", "grpc", "--http2-prior-knowledge", *headers, *flags, url],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=suite.folder,
        env={**client_environment(), "HOME": str(suite.folder)},
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def call(suite: Suite, method: str, request: object, *flags: str) -> Ended:
    path = f"/taskyard.v1.TaskService/{method}"
    return buf_curl(suite, path, "-d", json.dumps(request), *flags, key=suite.context["key"])


@pytest.mark.parametrize("server", SERVERS)
def test_a_key_lists_the_services(suite: Suite, server: str) -> None:
    ended = buf_curl(suite, "", "--list-services", key=suite.context["key"], server=server)
    assert ended.code == 0, ended.err
    assert SERVICES[server] in ended.out.split()


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("key", [None, "ty_wrong_0123456789abcdef"])
def test_without_a_valid_key_nothing_is_listed(suite: Suite, server: str, key: str | None) -> None:
    ended = buf_curl(suite, "", "--list-services", key=key, server=server)
    assert ended.code != 0
    assert "taskyard" not in ended.out
    # How buf words UNAUTHENTICATED.
    assert "you are not authenticated" in ended.err


def test_create_get_and_watch_with_a_key(suite: Suite) -> None:
    task = f"curl-{uuid.uuid4().hex[:8]}"
    name = f"tenants/default/tasks/{task}"
    spec = {"execution": {"command": {"program": "echo", "args": ["hi"]}}}
    created = call(suite, "CreateTask", {"parent": "tenants/default", "taskId": task, "task": {"spec": spec}})
    assert created.code == 0, created.err
    assert json.loads(created.out)["task"]["name"] == name
    watch = {"parent": "tenants/default", "names": [name], "snapshot": True, "untilTerminal": True}
    watched = call(suite, "WatchTasks", watch)
    assert watched.code == 0, watched.err
    assert "TASK_PHASE_SUCCEEDED" in watched.out
    got = call(suite, "GetTask", {"name": name})
    assert json.loads(got.out)["task"]["status"]["phase"] == "TASK_PHASE_SUCCEEDED"


def test_calls_without_a_key_are_refused(suite: Suite) -> None:
    # The schema comes from the checkout, because reflection is refused as well.
    flags = ("--reflect=false", "--schema", str(ROOT / "protos"))
    for method, request in (("GetTask", {"name": "tenants/default/tasks/x"}), ("CreateTask", {})):
        path = f"/taskyard.v1.TaskService/{method}"
        ended = buf_curl(suite, path, "-d", json.dumps(request), *flags)
        assert ended.code == UNAUTHENTICATED << 3, ended.err
        assert "unauthenticated" in ended.err


def page_steps(language: str) -> list[tuple[str, str]]:
    """The commands of the page in blocks of a language, each with what it shows."""
    text = (ROOT / "docs/howto/grpcurl.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    steps = [step for block in blocks for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(step.partition("\n")[0], step.partition("\n")[2]) for step in steps]


def follow_page(suite: Suite, steps: list[tuple[str, str]], path: str) -> None:
    mark = "--8<--"
    script = "\n".join(f"echo '{mark}'\n{command}" for command, _ in steps)
    environment = {**client_environment(), "HOME": str(suite.folder)}
    ended = subprocess.run(
        ["bash", "-c", script],
        cwd=suite.folder,
        env={**environment, "PATH": f"{path}:{environment['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    printed = ended.stdout.split(f"{mark}\n")[1:]
    assert len(printed) == len(steps), ended.stdout
    for (command, shown), found in zip(steps, printed, strict=True):
        expected = ".*".join(re.escape(part) for part in re.split("\n?…\n?", shown.rstrip("\n")))
        assert re.fullmatch(expected, found.rstrip("\n"), re.DOTALL), f"$ {command}\n{found}"


def find_grpcurl() -> str:
    """The folder of grpcurl, installed into Go's own cache if Go is there; empty if there is none."""
    if found := shutil.which("grpcurl"):
        return str(Path(found).parent)
    if shutil.which("go") is None:
        return ""
    place = Path(
        subprocess.run(["go", "env", "GOPATH"], capture_output=True, text=True).stdout.strip(), "bin"
    )
    if not (place / "grpcurl").is_file():
        subprocess.run(["go", "install", "github.com/fullstorydev/grpcurl/cmd/grpcurl@latest"], timeout=600)
    return str(place) if (place / "grpcurl").is_file() else ""


@pytest.mark.timeout(900)
def test_the_page_works_with_grpcurl(suite: Suite) -> None:
    folder = find_grpcurl()
    if not folder:
        pytest.skip("grpcurl is not installed")
    follow_page(suite, page_steps("grpcurl"), folder)


def test_the_page_works_with_buf_curl(suite: Suite) -> None:
    variables = [step for step in page_steps("grpcurl") if "=$(" in step[0]]
    follow_page(suite, [*variables, *page_steps("bufcurl")], str(BIN))


@pytest.mark.parametrize("server", SERVERS)
def test_health_is_open(suite: Suite, server: str) -> None:
    with grpc.insecure_channel(suite.context[server]) as channel:
        stub: Any = HealthStub(channel)
        answer = stub.Check(HealthCheckRequest(), timeout=10)
    assert answer.status == HealthCheckResponse.SERVING
