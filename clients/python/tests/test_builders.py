"""The requests that the builders create."""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from taskyard import After, command, container, external, function, script, typed, wasm
from taskyard.convert import from_payload, to_payload
from taskyard.v1 import common_pb2, task_pb2


@pytest.mark.seed("S4.27", "S4.45", "S4.49")
def test_command_keeps_arguments_and_takes_options() -> None:
    request = command(
        "ffmpeg",
        "-i",
        "in.mp4",
        working_directory="/data",
        id="encode-1",
        labels={"team": "a"},
        env={"LANG": "C"},
        priority=0,
        retry=5,
        timeout=timedelta(minutes=5),
        queue_timeout=1.5,
        not_before=datetime(2026, 1, 2, tzinfo=UTC),
        cpu=0.5,
        memory_mb=64,
        runner_labels={"gpu": "yes"},
        overlap="forbid",
        on_runner_lost="redistribute",
        admission="drop_if_running",
        slot="s",
        entity=("planner", "p1"),
    ).request
    spec = request.task.spec
    assert list(spec.execution.command.args) == ["-i", "in.mp4"]
    assert spec.execution.command.working_directory == "/data"
    assert (request.task_id, request.task.metadata.labels["team"]) == ("encode-1", "a")
    assert (spec.env[0].name, spec.env[0].value) == ("LANG", "C")
    assert spec.HasField("priority") and spec.priority == 0
    assert spec.retry.max_retries == 5
    assert spec.attempt_timeout.ToTimedelta() == timedelta(minutes=5)
    assert spec.queue_timeout.ToTimedelta() == timedelta(seconds=1.5)
    assert spec.not_before.ToDatetime(tzinfo=UTC) == datetime(2026, 1, 2, tzinfo=UTC)
    assert (spec.resources.cpu_millis, spec.resources.memory_mb) == (500, 64)
    assert spec.placement.required.selector.match_labels["gpu"] == "yes"
    assert spec.overlap == task_pb2.OVERLAP_POLICY_FORBID
    assert spec.on_runner_lost == task_pb2.RUNNER_LOST_POLICY_REDISTRIBUTE
    assert spec.admission == task_pb2.ADMISSION_POLICY_DROP_IF_RUNNING
    assert (spec.slot, spec.entity.type, spec.entity.id) == ("s", "planner", "p1")


def test_options_left_out_are_left_to_the_server() -> None:
    spec = command("true").request.task.spec
    expected = task_pb2.TaskSpec(
        execution=task_pb2.Execution(command=task_pb2.CommandExecution(program="true"))
    )
    assert spec == expected


def test_retry_policy_in_full() -> None:
    retry = command(
        "true", retry={"max_retries": 0, "initial": 1, "max": 60, "factor": 3, "jitter": "full"}
    ).request.task.spec.retry
    assert retry.HasField("max_retries") and retry.max_retries == 0
    assert retry.backoff.jitter == common_pb2.JITTER_POLICY_FULL
    assert (retry.backoff.initial.seconds, retry.backoff.max.seconds, retry.backoff.factor) == (1, 60, 3)


@pytest.mark.seed("S4.33-34")
def test_scripts_name_their_interpreter() -> None:
    kinds = [script.bash("a"), script.python("a"), script.node("a"), script.custom("awk", "a", flag="-f")]
    made = [new.request.task.spec.execution.script for new in kinds]
    assert [task_pb2.Interpreter.Name(one.interpreter) for one in made] == [
        "INTERPRETER_BASH",
        "INTERPRETER_PYTHON",
        "INTERPRETER_NODE",
        "INTERPRETER_CUSTOM",
    ]
    assert {one.body for one in made} == {b"a"}
    assert (made[3].custom_program, made[3].custom_flag) == ("awk", "-f")


def test_function_sends_its_payload_as_exact_json() -> None:
    spec = function("resize", {"pixels": 2**60 + 1, "name": "ä"}).request.task.spec
    assert spec.execution.function.function == "resize"
    assert spec.payload.raw == '{"pixels":1152921504606846977,"name":"ä"}'.encode()
    assert spec.payload.content_type == "application/json"


def test_typed_leaves_the_execution_to_the_type() -> None:
    spec = typed("report", {"month": 5}).request.task.spec
    assert not spec.HasField("execution")
    assert (spec.task_type, from_payload(spec.payload)) == ("report", {"month": 5})


@pytest.mark.seed("S4.28")
def test_container_and_external() -> None:
    made = container("alpine", "-c", "ls", entrypoint=["sh"], network=True).request.task.spec.execution
    assert (made.container.image, list(made.container.command), made.container.network) == (
        "alpine",
        ["sh"],
        True,
    )
    waiting = external(report_timeout=30).request.task.spec.execution.external
    assert waiting.report_timeout.seconds == 30


@pytest.mark.seed("S4.29")
def test_wasm_is_sent_with_its_digest(tmp_path: Path) -> None:
    file = tmp_path / "module.wasm"
    file.write_bytes(b"\0asm")
    digest = hashlib.sha256(b"\0asm").digest()
    for module in (b"\0asm", file):
        execution = wasm(module, "x").request.task.spec.execution.wasm
        assert (execution.inline, execution.sha256) == (b"\0asm", digest)
    on_host = wasm("/opt/m.wasm", sha256=digest.hex()).request.task.spec.execution.wasm
    assert (on_host.path, on_host.sha256) == ("/opt/m.wasm", digest)
    with pytest.raises(ValueError, match="sha256"):
        wasm("/opt/m.wasm")


def test_invalid_builder_arguments_raise() -> None:
    with pytest.raises(TypeError, match="prio"):
        command("true", prio=3)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="queue"):
        command("true", admission="never")  # type: ignore[arg-type]
    with pytest.raises(ValueError):
        function("f", {"x": float("nan")})


@pytest.mark.parametrize("value", [{"a": [1, None, "x"]}, [], "text", 0, b"\x00\xff"])
def test_payloads_round_trip(value: object) -> None:
    assert from_payload(to_payload(value)) == value


def test_a_payload_in_struct_form_is_read_as_well() -> None:
    payload = common_pb2.Payload()
    payload.json.update({"a": 1})
    assert from_payload(payload) == {"a": 1}
    assert from_payload(common_pb2.Payload()) is None


def test_after_takes_ids_tasks_and_conditions() -> None:
    class Named:
        name = "tenants/t/tasks/b"

    spec = command("true", after=["a", Named(), After("c", alias="x", when="ended")]).request.task.spec
    assert [(entry.task, entry.alias, entry.when) for entry in spec.after] == [
        ("a", "", task_pb2.DEPENDENCY_CONDITION_SUCCEEDED),
        ("tenants/t/tasks/b", "", task_pb2.DEPENDENCY_CONDITION_SUCCEEDED),
        ("c", "x", task_pb2.DEPENDENCY_CONDITION_ENDED),
    ]
    with pytest.raises(ValueError, match="never"):
        command("true", after=[After("a", when="never")])  # type: ignore[arg-type]
