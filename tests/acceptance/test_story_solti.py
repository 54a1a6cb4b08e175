"""An agent's work as solti describes it: kinds, restarts, admission, selectors, limits, embedded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from taskyard import SyncClient, command, errors, limits, script, words
from tests.acceptance.story import client_of
from tests.acceptance.suite import Suite

SPEC = """
id: {id}
type: solti.task
command: [sh, -c, "exit 3"]
slot: restarts
timeout: 5s
retry: {{maxRetries: 2}}
restart: OnFailure
backoff: {{firstMs: 10, maxMs: 50, factor: 2.0, jitter: Decorrelated}}
"""


@pytest.fixture(scope="module")
def client(suite: Suite) -> Iterator[SyncClient]:
    suite.done("apply", "--preset", "solti")
    with client_of(suite) as client:
        yield client


@pytest.mark.seed("S4.6", "S4.8", "S4.27", "S4.32-34")
def test_commands_and_scripts_run_in_slots_with_a_timeout(client: SyncClient) -> None:
    kinds = [
        command("echo", "$HOME", task_type="solti.task", slot="a", timeout=30),
        script.bash('echo "$1"', "bash", task_type="solti.task", slot="b", timeout=30),
        script.python("print('python')", task_type="solti.task", slot="c", timeout=30),
        script.custom(
            "awk", 'BEGIN { print "awk" }', flag="-f", task_type="solti.task", slot="d", timeout=30
        ),
    ]
    tasks = [client.create(new) for new in kinds]
    printed = []
    for task in tasks:
        assert client.wait(task, timeout=120).succeeded
        printed.append("".join(entry.message for entry in client.logs(task)))
    assert printed == ["$HOME", "bash", "python", "awk"]
    build: Any = command
    for wrong in ({"slot": "a"}, {"timeout": 5}):
        with pytest.raises(errors.FieldInvalid):
            client.create(build("true", task_type="solti.task", **wrong))


@pytest.mark.seed("S4.9", "S4.22", "S4.25", "S4.35-37", "S4.44")
def test_a_task_restarts_on_failure_until_it_is_exhausted(suite: Suite, client: SyncClient) -> None:
    (suite.folder / "restarts.yaml").write_text(SPEC.format(id="restarts-1"))
    assert suite.done("submit", "--file", "restarts.yaml") == "restarts-1\n"
    ended = client.wait("restarts-1", timeout=120)
    assert (str(ended.phase), ended.exit_code) == ("EXHAUSTED", 3)
    runs = list(client.runs("restarts-1"))
    assert [run.proto.attempt for run in runs] == [3, 2, 1]
    assert all(run.proto.start_time.seconds and run.proto.end_time.seconds for run in runs)


@pytest.mark.seed("S4.23", "S4.24")
def test_a_task_times_out_or_is_cancelled(client: SyncClient) -> None:
    slow = client.create(command("sleep", "60", task_type="solti.task", slot="slow", timeout=1))
    assert str(client.wait(slow, timeout=120).phase) == "TIMED_OUT"
    unwanted = client.create(command("sleep", "60", task_type="solti.task", slot="slow", timeout=60))
    client.cancel(unwanted)
    assert str(client.wait(unwanted, timeout=120).phase) == "CANCELLED"


@pytest.mark.seed("S4.38", "S4.73")
def test_a_taken_slot_drops_replaces_or_queues(suite: Suite, client: SyncClient) -> None:
    first = client.create(command("sleep", "60", task_type="solti.task", slot="taken", timeout=60))
    options = ("--type", "solti.task", "--slot", "taken", "--timeout", "60s")
    dropped = suite.done("submit", *options, "--admission", "DropIfRunning", "--", "true")
    assert dropped.strip() == first.id
    queued = suite.done("submit", *options, "--admission", "Queue", "--", "true").strip()
    replacing = suite.done("submit", *options, "--admission", "Replace", "--", "true").strip()
    assert client.wait(replacing, timeout=120).succeeded
    assert {str(client.wait(one, timeout=120).phase) for one in (first, queued)} == {"CANCELLED"}


@pytest.mark.seed("S4.39-43")
def test_a_selector_that_no_runner_matches_is_explained(suite: Suite, client: SyncClient) -> None:
    task = suite.done("submit", "--selector", "zone=eu,gpu,!spot", "--", "true").strip()
    explained = suite.cli("explain", task)
    assert explained.code == 1 and "zone" in explained.out
    client.cancel(task)


@pytest.mark.seed("S4.54-57", "S4.59-61")
def test_limits_and_identities_hold_on_both_sides(client: SyncClient) -> None:
    for slot in ("..", "a b", "x" * (limits.SLOT_MAX_LEN + 1)):
        new = command("true", task_type="solti.task", slot=slot, timeout=5)
        with pytest.raises(words.Invalid):
            new.validate()
        with pytest.raises(errors.FieldInvalid):
            client.create(new)


@pytest.mark.seed("S4.30")
def test_an_embedded_function_is_a_task_like_any_other(client: SyncClient) -> None:
    attempts = []

    def work() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return 42

    ended = client.run_embedded(work, timeout=30, retry={"max_retries": 2, "initial": 0.01})
    assert (ended.result, len(attempts)) == (42, 2)
    assert len(list(client.runs(ended))) == 2
