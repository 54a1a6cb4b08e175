"""What a command loads: modules that are not needed make every call slower."""

import json
import subprocess
import sys

import pytest

HEAVY = ("grpc", "google.protobuf", "asyncio", "yaml", "rich", "taskyard.client", "taskyard.errors")
# Not needed to list, get or submit tasks.
OTHER = (
    "yaml",
    "rich",
    "csv",
    "taskyard.admin",
    "taskyard.embedded",
    "taskyard.schedules",
    "taskyard.cli.jsonpath",
    "taskyard.v1.runner_service_pb2",
    "taskyard.v1.task_type_service_pb2",
    "taskyard.v1.tenant_service_pb2",
    "taskyard.v1.admin_service_pb2",
    "taskyard.v1.embedded_service_pb2",
    "taskyard.v1.lease_pb2",
    "taskyard.v1.schedule_service_pb2",
    "google.protobuf.json_format",
    "google.protobuf.struct_pb2_grpc",
)


def loaded(*arguments: str) -> set[str]:
    """The modules that are loaded after a command has run."""
    program = (
        "import json, sys\n"
        "from taskyard.cli.main import run\n"
        f"run({list(arguments)!r})\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"TASKYARD_ADDRESS": "127.0.0.1:1", "TASKYARD_PATIENCE": "0", "HOME": "/nonexistent"},
    )
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-command"]])
def test_the_overview_loads_nothing_of_the_client(arguments: list[str]) -> None:
    found = loaded(*arguments)
    assert not found.intersection(HEAVY)


@pytest.mark.parametrize(
    "arguments", [["list"], ["submit", "--", "true"], ["get", "a"], ["run", "--", "true"]]
)
def test_a_command_loads_nothing_that_it_does_not_use(arguments: list[str]) -> None:
    found = loaded(*arguments)
    assert "taskyard.client" in found
    assert not found.intersection(OTHER)
