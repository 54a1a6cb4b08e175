"""Explanations from facts alone: the message, remedy and opening time of each gate."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.scheduler.tests.placing import profile, wanted
from taskyard_scheduler.domain.explain import (
    Explanation,
    Facts,
    Gate,
    GateVerdict,
    SlotFacts,
    TaskFacts,
    TenantFacts,
    TypeFacts,
    explain,
)
from taskyard_scheduler.domain.explain_runners import Candidate
from taskyard_scheduler.domain.placement import EXTERNAL_KIND, Obstacle
from taskyard_scheduler.domain.resources import Resources

NOW = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
HOUR = NOW + timedelta(hours=1)
SPEC = Facts(NOW, TenantFacts("t"), wanted())
NAME = "tenants/t/tasks/x"
IDLE = Candidate(profile("idle"), free=4)


def task(phase: str = "PENDING", **fields: Any) -> Facts:
    return replace(SPEC, task=TaskFacts(NAME, phase, **{"queued": True, **fields}))


def closed(found: Explanation) -> list[GateVerdict]:
    assert found.runnable is not any(not gate.passed for gate in found.gates)
    return [gate for gate in found.gates if not gate.passed]


def only(facts: Facts, *candidates: Candidate) -> GateVerdict:
    (gate,) = closed(explain(facts, candidates or [IDLE]))
    return gate


def test_plain_spec_and_plain_task_pass_every_gate() -> None:
    assert explain(SPEC, [IDLE]).runnable
    assert explain(task(pending_reason="QUEUED"), [IDLE]).runnable


@pytest.mark.parametrize(
    ("phase", "remedy"),
    [
        ("SUCCEEDED", "create it again: a succeeded task cannot be retried"),
        *((phase, f"retry {NAME} to run it again") for phase in ("FAILED", "CANCELLED", "EXHAUSTED")),
    ],
)
def test_ended_task_names_its_remedy(phase: str, remedy: str) -> None:
    gate = only(task(phase))
    assert (gate.gate, gate.remedy) == (Gate.PHASE, remedy)


@pytest.mark.parametrize(
    ("phase", "summary"), [("RUNNING", "it runs on runner r1"), ("SCHEDULED", "it is assigned to runner r1")]
)
def test_held_task_is_explained_with_its_runner(phase: str, summary: str) -> None:
    found = explain(task(phase, holder="r1"), [])
    assert found.runnable and found.summary == summary


def test_a_task_that_is_cancelled_while_its_lost_runner_may_still_end_it() -> None:
    gate = only(task("REDISTRIBUTING", queued=False, holder="r1", lease_expire_time=HOUR))
    assert gate.gate is Gate.PHASE and "2024-05-01T13:00:00Z" in gate.message
    assert explain(task("REDISTRIBUTING", holder="r1"), [IDLE]).runnable, "otherwise it can be claimed"


def test_external_work_is_its_owners_whether_it_is_a_task_or_a_spec() -> None:
    assert only(task(external=True)).remedy == f"report the status of {NAME}"
    assert explain(task("RUNNING", external=True), []).runnable
    spec = replace(SPEC, wanted=wanted(kind=EXTERNAL_KIND), not_before=HOUR)
    found = explain(spec, [IDLE])
    assert [gate.gate for gate in closed(found)] == [Gate.PHASE] and not found.runners
    off = explain(replace(spec, task_type=TypeFacts("tenants/t/taskTypes/x", disabled=True)), [])
    assert [gate.gate for gate in closed(off)] == [Gate.TASK_TYPE, Gate.PHASE], "it could not be created"


def test_spec_is_delayed_only_while_not_before_is_in_the_future() -> None:
    found = explain(replace(SPEC, not_before=HOUR), [IDLE])
    (gate,) = closed(found)
    assert gate.gate is Gate.DELAY and found.earliest_time == gate.open_time == HOUR
    assert explain(replace(SPEC, not_before=NOW), [IDLE]).runnable


def test_only_before_the_first_attempt_not_before_can_be_changed() -> None:
    delayed = only(task(pending_reason="DELAYED", next_attempt_time=HOUR))
    assert delayed.remedy.endswith("or change spec.not_before")
    waiting = only(task(pending_reason="BACKOFF", next_attempt_time=HOUR))
    assert waiting.remedy.endswith("or cancel it and retry it to start over at once")


def test_slot_explanation_depends_on_the_state_of_its_head() -> None:
    def gate(expire_time: datetime | None, ahead: int = 0) -> GateVerdict:
        return only(replace(SPEC, slot=SlotFacts("one", "tenants/t/tasks/head", ahead, expire_time)))

    assert gate(HOUR).message == 'slot "one" is taken by tenants/t/tasks/head'
    assert "has not started" in gate(None).message and "see what" in gate(None).remedy
    assert "whose runner is lost" in gate(NOW).message
    assert gate(HOUR, 2).message.endswith(", and 2 more wait before it")
    own = replace(task(), slot=SlotFacts("one", NAME, 0, None))
    assert explain(own, [IDLE]).runnable


def test_a_pause_is_the_quarantines_only_if_it_was_made_for_it() -> None:
    paused = replace(task("PAUSED"), quarantine="tenants/t/quarantines/q")
    gates = [gate.gate for gate in closed(explain(paused, [IDLE]))]
    assert gates == [Gate.PHASE, Gate.QUARANTINE]
    assert only(replace(paused, quarantine_holds=True)).gate is Gate.QUARANTINE


def test_refusal_reports_its_end_and_the_earliest_of_several_counts() -> None:
    refusing = [Candidate(profile(f"r{n}"), free=4, refused_seconds=60.0 * n) for n in (3, 1, 2)]
    gate = only(SPEC, *refusing)
    assert gate.gate is Gate.RUNNER and gate.open_time == NOW + timedelta(minutes=1)
    late = explain(replace(SPEC, not_before=HOUR), refusing)
    assert late.earliest_time == HOUR, "every gate has to open"
    assert only(SPEC, Candidate(profile("off"), online=False)).open_time is None


def test_a_runner_with_free_places_and_no_free_memory_is_full() -> None:
    heavy = replace(SPEC, wanted=wanted(resources=Resources(memory_mb=512)))
    room = profile("r1", resources=Resources(memory_mb=1024))
    found = explain(heavy, [Candidate(room, free=4, budget=Resources(memory_mb=511))])
    assert [gate.gate for gate in closed(found)] == [Gate.TURN]
    assert found.runners[0].obstacle is Obstacle.CAPACITY
    assert explain(heavy, [Candidate(room, free=4, budget=Resources(memory_mb=512))]).runnable
