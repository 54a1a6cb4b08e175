"""Every reason that an RPC documents is shown by a test, marked `@pytest.mark.covers(rpc, reason)`."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

from taskyard.v1 import task_service_pb2

TESTS = Path(__file__).parents[1]
SERVICES = (
    "task_service",
    "lease_service",
    "session_service",
    "runner_service",
    "tenant_service",
    "task_type_service",
    "schedule_service",
    "group_service",
    "api_key_service",
    "admin_service",
    "entity_service",
    "embedded_service",
)


# Reasons without a test. The list only shrinks: a pair that has a test must be removed.
NOT_YET: set[tuple[str, str]] = set()
# "Per task as CancelTask": a batch names no versions and no request ids.
IMPOSSIBLE = {
    ("BatchCancelTasks", "RESOURCE_VERSION_MISMATCH"),
    ("BatchRetryTasks", "RESOURCE_VERSION_MISMATCH"),
    ("BatchRetryTasks", "REQUEST_ID_REUSED"),
}


def load_documented_errors() -> ModuleType:
    """The module beside this one; test folders are no packages."""
    spec = importlib.util.spec_from_file_location(
        "documented_errors", Path(__file__).with_name("documented_errors.py")
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def covered() -> set[tuple[str, str]]:
    """The pairs that tests are marked with."""
    mark = re.compile(r"covers\(\s*\"(\w+)\",\s*\"(\w+)\"")
    return {pair for file in TESTS.rglob("test_*.py") for pair in mark.findall(file.read_text())}


def test_comments_are_understood() -> None:
    found = load_documented_errors().documented("task_service")
    assert ("RetryTask", "REQUEST_ID_REUSED") in found
    assert ("RetryTask", "ALREADY_EXISTS") not in found
    assert {("CreateTask", "ALREADY_EXISTS"), ("BatchCreateTasks", "BATCH_TOO_LARGE")} <= found
    assert {("BatchCreateTasks", "SLOT_QUEUE_FULL"), ("BatchCancelTasks", "TASK_TERMINAL")} <= found
    methods = task_service_pb2.DESCRIPTOR.services_by_name["TaskService"].methods_by_name
    assert {rpc for rpc, _ in found} == set(methods)


def test_every_documented_reason_has_a_test() -> None:
    without = load_documented_errors().documented(*SERVICES) - covered() - NOT_YET - IMPOSSIBLE
    assert not without, f"no test is marked with {sorted(without)}"


def test_marks_name_documented_reasons() -> None:
    documented = load_documented_errors().documented(*SERVICES)
    unknown = covered() - documented
    assert not unknown, f"no proto documents {sorted(unknown)}"


def test_covered_reasons_are_not_listed_as_missing() -> None:
    done = NOT_YET & covered()
    assert not done, f"remove {sorted(done)} from NOT_YET"


def test_every_mutating_rpc_documents_its_repetition() -> None:
    undocumented = load_documented_errors().undocumented_repeats(*SERVICES)
    assert not undocumented, f"document in the proto what a repetition of {sorted(undocumented)} does"
