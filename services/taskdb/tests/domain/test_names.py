"""Resource names and fencing tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard.errors import FieldInvalid
from taskyard_taskdb.domain import names

ids = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True).filter(lambda text: text not in names.RESERVED)


@given(ids, ids)
def test_a_task_name_is_parsed_as_it_was_formatted(tenant: str, task: str) -> None:
    assert names.parse_task_name(names.task_name(tenant, task)) == (tenant, task)


@given(ids, ids, st.integers(1, 2**63 - 1))
def test_a_checkpoint_name_is_parsed_as_it_was_formatted(tenant: str, task: str, number: int) -> None:
    assert names.parse_checkpoint_name(names.checkpoint_name(tenant, task, number)) == (tenant, task, number)


def test_latest_is_sequence_0() -> None:
    assert names.parse_checkpoint_name("tenants/a/tasks/b/checkpoints/latest") == ("a", "b", 0)


@pytest.mark.parametrize(
    "name",
    [
        "", "tenants/a", "tenants/a/tasks/", "tenants//tasks/b", "tasks/b", "tenants/a/tasks/b/",
        "/tenants/a/tasks/b", "tenants/./tasks/b", "tenants/a/tasks/..", "tenants/-/tasks/b",
        "tenants/a/tasks/-", "tenants/a/tasks/b c", "tenants/a/tasks/b\n", "tenants/a/tasks/\0",
        "tenants/ä/tasks/b", "tenants/a/tasks/\u202eb", "tenants/a/Tasks/b",
        "tenants/a/tasks/" + "b" * 257, "tenants/" + "a" * 65 + "/tasks/b", "tenants/a/tasks/b/runs/1",
    ],
)  # fmt: skip
def test_a_malformed_task_name_is_refused_with_its_field(name: str) -> None:
    with pytest.raises(FieldInvalid) as caught:
        names.parse_task_name(name, "requests[3].name")
    assert caught.value.violations[0].field == "requests[3].name"
    assert len(caught.value.message) < 300


@pytest.mark.parametrize("last", ["0", "-1", "x", "", "9223372036854775808", "١"])
def test_a_malformed_checkpoint_name_is_refused(last: str) -> None:
    with pytest.raises(FieldInvalid):
        names.parse_checkpoint_name(f"tenants/a/tasks/b/checkpoints/{last}")


def test_the_longest_ids_are_accepted() -> None:
    assert names.parse_task_name(f"tenants/{'a' * 64}/tasks/{'b' * 256}")
    assert names.parse_runner_name(f"runners/{'r' * 128}")


def test_every_tenant_is_a_parent_and_not_a_task() -> None:
    assert names.parse_tenant_name("tenants/-") == "-"
    assert names.parse_tenant_name("tenants/acme") == "acme"
    with pytest.raises(FieldInvalid):
        names.parse_tenant_name("tenants/..")


@given(st.integers(1, 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_a_fencing_token_round_trips(generation: int, lease_id: int) -> None:
    token = f"{generation}.{lease_id}"
    assert names.parse_fencing_token(token) == (generation, lease_id)


@pytest.mark.parametrize("token", ["", "1", "1.", ".1", "-1.1", "1.1.1", "1.2 ", "a.b", "1" * 20 + ".1"])
def test_a_malformed_fencing_token_is_refused(token: str) -> None:
    with pytest.raises(FieldInvalid):
        names.parse_fencing_token(token)
