"""The checker of the chaos suite, checked: a healthy history passes, and each damage is found by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tests.chaos.checker import Recorded, Trouble, check
from tests.chaos.final_state import Change, FinalState, Line, StoredRun, StoredTask
from tests.chaos.history import Effect, Entry
from tests.chaos.leadership import LeaderWrite
from tests.chaos.workloads import Plan


@dataclass
class World:
    """A task that lost its first run, kept a checkpoint, and succeeded; and one that was cancelled."""

    plans: dict[str, Plan] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    unended: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    faults: list[tuple[str, bool]] = field(default_factory=list)
    stalls: list[str] = field(default_factory=list)
    final: FinalState = field(default_factory=FinalState)

    def check(self) -> list[str]:
        recorded = Recorded(
            self.plans,
            self.entries,
            self.effects,
            self.troubles,
            self.unended,
            self.failures,
            self.faults,
            self.stalls,
        )
        return check(recorded, self.final)


def change(id: int, version: int, generation: int, event: int, phase: int, **fields: int) -> Change:
    attempt, checkpoint = fields.get("attempt", 0), fields.get("checkpoint", 0)
    return Change(
        id, 10.0 + id, version, generation, attempt, fields.get("retries", 0), event, phase, checkpoint
    )


def world() -> World:
    made = World()
    made.plans = {
        "work": Plan("work", "counter", steps=2, keeps=True, forbid=True, retries=2),
        "stop": Plan("stop", "cancel", steps=60, forbid=True, action="cancel", after="work"),
    }
    made.final.tasks = {
        "work": StoredTask(
            10,
            9,
            "work",
            [
                change(1, 1, 0, 1, 1),
                change(2, 2, 1, 2, 2),
                change(3, 3, 1, 3, 3, attempt=1),
                change(4, 4, 1, 5, 3, attempt=1, checkpoint=1),
                change(5, 5, 1, 16, 5, attempt=1),
                change(6, 6, 2, 2, 2, attempt=1),
                change(7, 7, 2, 3, 3, attempt=2),
                change(8, 8, 2, 5, 3, attempt=2, checkpoint=2),
                change(9, 9, 2, 8, 10, attempt=2),
            ],
            {1: StoredRun(1, 4, "r1", 15.0, True, 0), 2: StoredRun(2, 3, "r2", 19.0, True, 1)},
            [Line(1, 1, "line 1", False), Line(2, 1, "line 2", False)],
        ),
        "stop": StoredTask(
            13,
            4,
            "stop",
            [
                change(20, 1, 0, 1, 1),
                change(21, 2, 1, 2, 2),
                change(22, 3, 1, 13, 2),
                change(23, 4, 1, 12, 13),
            ],
            {1: StoredRun(1, 6, "r1", 33.0, False, 0)},
        ),
    }
    made.plans["join"] = Plan("join", "gather", steps=2)
    made.final.tasks |= {
        "join": StoredTask(
            10,
            6,
            "join",
            [
                change(30, 1, 0, 1, 1),
                change(31, 2, 1, 2, 2),
                change(32, 3, 1, 27, 1),
                change(35, 4, 2, 2, 2),
                change(36, 5, 2, 3, 3, attempt=1),
                change(37, 6, 2, 8, 10, attempt=1),
            ],
            {1: StoredRun(1, 8, "r1", 42.0, True, 0), 2: StoredRun(2, 3, "r1", 47.0, True, 0)},
        ),
        "join.a.0f": StoredTask(10, 1, changes=[change(33, 1, 1, 8, 10)], parent="join"),
        "join.b.0f": StoredTask(10, 1, changes=[change(34, 1, 1, 8, 10)], parent="join"),
    }
    made.effects = [
        Effect(13.0, "work", 1, "start", 0),
        Effect(13.1, "work", 1, "step", 1),
        Effect(14.0, "work", 1, "kept", 1),
        Effect(17.0, "work", 2, "start", 1),
        Effect(17.1, "work", 2, "step", 2),
        Effect(18.0, "work", 2, "end", 2),
        Effect(41.5, "join", 1, "spawned", 0),
    ]
    made.entries = [
        Entry(10.0, "created", {"task": "work", "answer": "work"}),
        Entry(11.0, "created", {"task": "work", "answer": "work"}),
        Entry(19.0, "created", {"task": "stop", "answer": "stop"}),
        Entry(32.0, "cancelled", {"task": "stop"}),
        Entry(20.0, "ended", {"task": "work", "phase": 10}),
        Entry(20.0, "followed", {"task": "work", "lines": [[1, 1], [2, 1]]}),
        *(Entry(20.0, "watch", {"task": "work", "version": version}) for version in range(1, 10)),
        *(Entry(40.0, "watch", {"task": "stop", "version": version}) for version in range(1, 5)),
        *(Entry(47.0, "watch", {"task": "join", "version": version}) for version in range(1, 7)),
    ]
    made.faults = [("kill taskdb0", True)]
    made.final.leader_writes = [LeaderWrite("work", "taskdb1", "taskdb1")]
    made.final.instants = {"often": [100, 102, 104]}
    return made


def test_a_healthy_history_has_no_violation() -> None:
    assert world().check() == []


def lose(made: World) -> None:
    del made.final.tasks["work"]
    made.entries = [entry for entry in made.entries if entry.what == "created"]


def end_twice(made: World) -> None:
    made.final.tasks["work"].changes.append(change(10, 10, 2, 9, 11, attempt=2))
    made.entries.append(Entry(20.0, "watch", {"task": "work", "version": 10}))


def accept_a_stale_start(made: World) -> None:
    changes = made.final.tasks["work"].changes
    changes[6] = changes[6]._replace(generation=1)


def skip_a_generation(made: World) -> None:
    changes = made.final.tasks["work"].changes
    changes[5] = changes[5]._replace(generation=3)


def overlap(made: World) -> None:
    made.effects.append(Effect(17.5, "work", 1, "step", 2))


def forget_a_stored_checkpoint(made: World) -> None:
    made.final.tasks["work"].runs[2] = StoredRun(2, 3, "r2", 19.0, True, 0)


def forget_a_kept_checkpoint(made: World) -> None:
    made.effects[3] = Effect(17.0, "work", 2, "start", 0)
    made.final.tasks["work"].lines.insert(1, Line(2, 0, "line 1", False))


def claim_after_the_cancel(made: World) -> None:
    made.final.tasks["stop"].changes.insert(3, change(23, 4, 2, 2, 2))


def act_after_the_end(made: World) -> None:
    made.effects.append(Effect(34.0, "stop", 1, "step", 1))


def lose_a_line(made: World) -> None:
    made.final.tasks["work"].lines.pop()


def lose_an_event(made: World) -> None:
    del made.entries[8]


def lose_a_lease(made: World) -> None:
    made.final.tasks["work"].runs[1] = StoredRun(1, 7, "r1", 15.0, True, 0)


def claim_before_the_prerequisite_ended(made: World) -> None:
    changes = made.final.tasks["stop"].changes
    changes[1] = changes[1]._replace(id=5)


def spawn_a_child_again(made: World) -> None:
    made.final.tasks["join.b.1f"] = made.final.tasks["join.b.0f"]


def end_a_child(id: int) -> Callable[[World], None]:
    def damage(made: World) -> None:
        made.final.tasks["join.b.0f"].changes[0] = change(id, 1, 1, 8, 10)

    return damage


DAMAGES: tuple[tuple[str, Callable[[World], object]], ...] = (
    ("I1", lose),
    ("I1", lambda made: setattr(made.final.tasks["work"], "nonce", "other")),
    ("I2", lambda made: made.entries.append(Entry(12.0, "created", {"task": "work", "answer": "stop"}))),
    ("I3", end_twice),
    ("I3", lambda made: setattr(made.final.tasks["stop"], "phase", 11)),
    ("I4", accept_a_stale_start),
    ("I4", skip_a_generation),
    ("I5", lambda made: made.unended.append("work")),
    ("I5", lambda made: made.stalls.append("kill taskdb0")),
    ("I6", overlap),
    ("I6", lambda made: made.final.tasks["work"].runs.update({1: StoredRun(1, 3, "r1", 15.0, True, 0)})),
    ("I7", lambda made: made.final.leader_writes.append(LeaderWrite("work", "taskdb0", "taskdb1"))),
    ("I8", forget_a_stored_checkpoint),
    ("I8", forget_a_kept_checkpoint),
    ("I9", claim_after_the_cancel),
    ("I9", act_after_the_end),
    ("I10", lambda made: made.final.tasks["work"].changes.append(change(9, 9, 2, 8, 10, retries=3))),
    ("I11", lose_an_event),
    ("I11", lambda made: made.entries.append(Entry(21.0, "watch", {"task": "work", "version": 9}))),
    ("I12", lose_a_line),
    ("I12", lambda made: made.entries.append(Entry(20.0, "followed", {"task": "work", "lines": [[1, 1]]}))),
    ("I13", lose_a_lease),
    ("I14", lambda made: made.final.findings.append("seals: damaged")),
    ("tables", lambda made: made.final.breaches.append("a task ends once")),
    ("dependency", claim_before_the_prerequisite_ended),
    ("spawn", spawn_a_child_again),
    ("spawn", lambda made: made.final.tasks.pop("join.a.0f")),
    ("spawn", end_a_child(36)),
    ("spawn", end_a_child(38)),
    ("wait", lambda made: made.final.tasks["join"].runs.update({1: StoredRun(1, 3, "r1", 47.5, True, 0)})),
    ("wait", lambda made: made.effects.append(Effect(42.5, "join", 1, "step", 1))),
    ("schedule", lambda made: made.final.instants["often"].remove(102)),
    ("schedule", lambda made: made.final.instants["often"].append(102)),
    ("fault", lambda made: made.faults.append(("kill taskdb1", False))),
)


@pytest.mark.parametrize(("invariant", "damage"), DAMAGES)
def test_each_damage_is_found(invariant: str, damage: Callable[[World], object]) -> None:
    made = world()
    damage(made)
    assert any(violation.startswith(invariant) for violation in made.check()), made.check()


def test_an_act_right_after_the_thaw_of_a_whole_runner_is_no_overlap() -> None:
    made = world()
    overlap(made)
    recorded = Recorded(made.plans, made.entries, made.effects, freezes=[(14.0, 17.4)])
    assert not any(violation.startswith("I6") for violation in check(recorded, made.final))


def test_an_act_right_after_the_thaw_of_a_whole_runner_is_no_act_after_the_end() -> None:
    made = world()
    made.effects.append(Effect(31.0, "stop", 1, "step", 1))
    act_after_the_end(made)
    recorded = Recorded(made.plans, made.entries, made.effects, freezes=[(30.8, 33.8)])
    assert not any(violation.startswith("I9") for violation in check(recorded, made.final))


def test_a_lease_lost_in_trouble_is_no_violation() -> None:
    made = world()
    lose_a_lease(made)
    made.troubles = [Trouble("r1", 12.0, 16.0, "stop r1.agent")]
    assert made.check() == []
