"""Words, limits and validation before anything is sent: what users of a typed model of tasks rely on."""

from __future__ import annotations

import math
from typing import Any

import pytest

from buf.validate import validate_pb2
from taskyard import command, limits, script, words
from taskyard.cli.manifest import new_tasks
from taskyard.cli.marked_yaml import YamlError
from taskyard.v1 import checkpoint_pb2, common_pb2, runner_link_service_pb2, task_pb2, task_service_pb2


def rules(message: Any, field: str) -> Any:
    """What the contract demands of a field."""
    return message.DESCRIPTOR.fields_by_name[field].GetOptions().Extensions[validate_pb2.field]


@pytest.mark.seed("S4.54-58")
def test_limits_are_those_of_the_contract() -> None:
    assert rules(task_pb2.ScriptExecution, "body").bytes.max_len == limits.MAX_SCRIPT_BODY_BYTES == 2_097_152
    assert rules(task_pb2.TaskSpec, "slot").string.max_len == limits.SLOT_MAX_LEN == 64
    create = rules(task_service_pb2.CreateTaskRequest, "task_id").string
    assert (create.max_len or 256) == limits.TASK_ID_MAX_LEN == 256
    hello = rules(runner_link_service_pb2.Hello, "runner_id").string
    assert hello.max_len == limits.RUNNER_ID_MAX_LEN == 128
    assert rules(task_pb2.TaskSpec, "task_type").string.max_len == limits.TASK_TYPE_MAX_LEN
    assert rules(task_pb2.TaskSpec, "priority").int32.lte == limits.MAX_PRIORITY
    assert rules(task_pb2.TaskSpec, "max_steps").int32.lte == limits.MAX_STEPS
    size = rules(checkpoint_pb2.CheckpointHeader, "size_bytes").int64
    assert size.lte == limits.MAX_CHECKPOINT_BYTES


SPELLINGS = [
    (words.parse_restart, {"Never": 1, "OnFailure": 2, "on-failure": 2, " always ": 3}),
    (words.parse_admission, {"DropIfRunning": 1, "Replace": 2, "queue": 3, "ADMISSION_POLICY_QUEUE": 3}),
    (words.parse_jitter, {"None": 1, "full": 2, "Equal": 3, "DECORRELATED": 4}),
    (words.parse_operator, {"In": 1, "NotIn": 2, "Exists": 3, "DoesNotExist": 4}),
    (words.parse_phase, {"Pending": 1, "Running": 3, "Succeeded": 10, "Failed": 11, "Timeout": 12}),
    (words.parse_phase, {"Canceled": 13, "Exhausted": 14, "completed": 10, "IN_PROGRESS": 3}),
]


@pytest.mark.seed("S4.19", "S4.35", "S4.37", "S4.38", "S4.42", "S4.73")
@pytest.mark.parametrize(("parse", "known"), SPELLINGS)
def test_words_are_read_in_every_spelling(parse: Any, known: dict[str, int]) -> None:
    assert {word: parse(word) for word in known} == known


@pytest.mark.seed("S4.68-71")
@pytest.mark.parametrize(
    ("parse", "error", "listed"),
    [
        (words.parse_admission, words.UnknownAdmission, "drop_if_running, replace, queue"),
        (words.parse_restart, words.UnknownRestart, "never, on_failure, always"),
        (words.parse_jitter, words.UnknownJitter, "none, full, equal, decorrelated"),
        (words.parse_phase, words.UnknownTaskPhase, "pending"),
    ],
)
def test_an_unknown_word_has_an_error_of_its_own_that_lists_the_words(
    parse: Any, error: type[words.Invalid], listed: str
) -> None:
    for word in ("sometimes", "", "unspecified"):
        with pytest.raises(error) as refused:
            parse(word)
        assert listed in str(refused.value) and repr(word) in str(refused.value)


@pytest.mark.seed("S4.68-70")
def test_builders_raise_the_same_errors() -> None:
    # As a caller without a type checker.
    build: Any = command
    with pytest.raises(words.UnknownAdmission):
        build("true", admission="sometimes")
    with pytest.raises(words.UnknownRestart):
        build("true", retry={"restart": "sometimes"})
    with pytest.raises(words.UnknownJitter):
        build("true", retry={"jitter": "sometimes"})


@pytest.mark.seed("S4.36", "S4.65", "S4.72")
@pytest.mark.parametrize(
    ("backoff", "message"),
    [
        ({"initial": 0}, "must be above 0"),
        ({"initial": 2, "max": 1}, "is below the first"),
        ({"factor": 0.99}, "at least 1"),
        ({"factor": math.nan}, "at least 1"),
        ({"factor": math.inf}, "at least 1"),
    ],
)
def test_a_backoff_that_shrinks_or_never_ends_is_refused_while_it_is_built(
    backoff: Any, message: str
) -> None:
    with pytest.raises(words.Invalid, match=message):
        command("true", retry=backoff)


@pytest.mark.seed("S4.64", "S4.65")
@pytest.mark.parametrize(
    "text",
    [
        "retry: {initial: 0s}",
        "backoff: {firstMs: 2000, maxMs: 1000}",
        "backoff: {factor: .inf}",
        "admission: Sometimes",
        "restart: Sometimes",
        "runnerSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}",
        "runnerSelector: {matchExpressions: [{key: a, operator: In}]}",
        "runnerSelector: {matchExpressions: [{key: a, operator: Near, values: [b]}]}",
    ],
)
def test_a_file_is_validated_while_it_is_read(text: str) -> None:
    with pytest.raises(YamlError, match=r"^task\.yaml:1:1: "):
        list(new_tasks(f"command: a\n{text}", "task.yaml"))


@pytest.mark.seed("S4.46", "S4.59", "S4.60", "S4.61", "S4.72")
@pytest.mark.parametrize("bad", [".", "..", "a b", "a/b", "ä", "a\n"])
def test_identities_are_checked_where_a_task_is_submitted(bad: str) -> None:
    command("true", id="Job_1.a-b", slot="Slot_1.a-b").validate()
    build: Any = command
    for field in ("id", "slot"):
        with pytest.raises(words.Invalid, match="is not allowed"):
            build("true", **{field: bad}).validate()
        with pytest.raises(words.Invalid, match="characters; at most"):
            build("true", **{field: "x" * 257}).validate()
    with pytest.raises(words.Invalid, match="is empty"):
        words.check_id("", "the slot", limits.SLOT_MAX_LEN)


@pytest.mark.seed("S4.33", "S4.54", "S4.63")
def test_a_script_above_its_limit_and_a_task_without_work_are_refused_at_the_boundary() -> None:
    script.bash("x" * limits.MAX_SCRIPT_BODY_BYTES).validate()
    with pytest.raises(words.Invalid, match="2097153 bytes"):
        script.bash("x" * (limits.MAX_SCRIPT_BODY_BYTES + 1)).validate()
    nothing = command("true")
    nothing.request.task.spec.ClearField("execution")
    with pytest.raises(words.Invalid, match="nothing to run"):
        nothing.validate()


@pytest.mark.seed("S4.67")
def test_the_example_of_the_document_is_built() -> None:
    new = command(
        "run.sh",
        slot="my-slot",
        timeout=5.0,
        retry={"restart": "on_failure", "jitter": "equal", "initial": 1.0, "max": 30.0, "factor": 2.0},
    )
    new.validate()
    spec = new.request.task.spec
    assert (spec.slot, spec.attempt_timeout.ToMilliseconds()) == ("my-slot", 5000)
    backoff = spec.retry.backoff
    assert (backoff.initial.ToMilliseconds(), backoff.max.ToMilliseconds(), backoff.factor) == (
        1000,
        30000,
        2,
    )
    assert (spec.retry.restart, backoff.jitter) == (
        common_pb2.RESTART_POLICY_ON_FAILURE,
        common_pb2.JITTER_POLICY_EQUAL,
    )


@pytest.mark.seed("S4.66")
def test_backoffs_are_equal_if_their_factors_are_bit_by_bit() -> None:
    one, same = (common_pb2.BackoffPolicy(factor=0.1 + 0.2) for _ in range(2))
    other = common_pb2.BackoffPolicy(factor=0.3)
    assert one == same and one.SerializeToString() == same.SerializeToString()
    assert one != other and one.SerializeToString() != other.SerializeToString()
