"""The tasks of the chaos load, and what is expected of each."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from taskyard import After, NewTask, command, function, script

# Built-ins where possible: the load competes with what it tests for two cores. One line, one write.
BODY = r"""
note() {
    read -r up _ < /proc/uptime
    printf '{"t":%s,"task":"%s","gen":%s,"what":"%s","n":%s}\n' \
        "$up" "$TASKYARD_TASK_ID" "$TASKYARD_GENERATION" "$1" "${2:-0}" >> "$EFFECTS"
}
i=0; [ -n "$TASKYARD_CHECKPOINT_FILE" ] && i=$(< "$TASKYARD_CHECKPOINT_FILE")
note start "$i"
while [ "$i" -lt "$STEPS" ]; do
    i=$((i + 1)); echo "line $i"; note step "$i"; sleep "$PACE"
    if [ -n "$KEEPS" ]; then echo "$i" > state; taskyard-task checkpoint state && note kept "$i"; fi
done
if [ "$TASKYARD_ATTEMPT" -le "$FAILS" ]; then note fail; exit 3; fi
note end "$i"
"""

# The function of each kind that is one.
FUNCTION_NAMES = {"function": "chaos.count", "parent": "chaos.parent", "gather": "chaos.gather"}


@dataclass(frozen=True)
class Plan:
    """One task of the load."""

    id: str
    kind: str
    steps: int = 6
    pace: float = 0.15
    keeps: bool = False
    fails: int = 0
    forbid: bool = False
    slot: str = ""
    retries: int = 20
    # What a user does while it runs: cancel, pause or nothing.
    action: str = ""
    # The task that has to end before it starts.
    after: str = ""

    def fields(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def exclusive(self) -> bool:
        """Whether two of its runs must not overlap."""
        return self.forbid or bool(self.slot)

    def task(self, effects: Path) -> NewTask:
        """The request; its id is also its request id, so that a repeat makes no second task."""
        options: dict[str, Any] = {
            "id": self.id,
            "request_id": f"request-{self.id}",
            "labels": {"chaos": self.kind, "nonce": self.id},
            "retry": {"max_retries": self.retries, "initial": 0.2, "max": 0.5},
            "overlap": "forbid" if self.forbid else None,
            "stop_grace_period": 2.0,
        }
        if self.slot:
            options |= {"slot": self.slot, "admission": "queue"}
        if self.after:
            options["after"] = [After(self.after, when="ended")]
        options = {name: value for name, value in options.items() if value is not None}
        if self.kind in FUNCTION_NAMES:
            payload = {
                "effects": str(effects),
                "steps": self.steps,
                "pace": self.pace,
                "keeps": self.keeps,
                "fails": self.fails,
            }
            return _with_losses(function(FUNCTION_NAMES[self.kind], payload, **options))
        env = {
            "EFFECTS": str(effects),
            "STEPS": str(self.steps),
            "PACE": f"{self.pace:g}",
            "KEEPS": "1" if self.keeps else "",
            "FAILS": str(self.fails),
        }
        return _with_losses(script.bash(BODY, env=env, **options))


def _with_losses(task: NewTask) -> NewTask:
    """A task that survives any number of lost runners: the faults are ours."""
    task.request.task.spec.retry.max_runner_losses = 1000
    return task


def scheduled_task() -> NewTask:
    """What the schedules of the load run."""
    return _with_losses(command("true", retry=20, labels={"chaos": "scheduled"}))


KINDS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("plain", 5, {}),
    ("flaky", 3, {"fails": 1}),
    ("slot", 3, {"steps": 4}),
    ("forbid", 5, {"forbid": True, "steps": 12}),
    ("allow", 3, {"steps": 12}),
    ("counter", 3, {"keeps": True, "steps": 5}),
    ("counter-flaky", 3, {"keeps": True, "steps": 4, "fails": 1}),
    ("cancel", 3, {"steps": 60, "action": "cancel", "forbid": True}),
    ("pause", 3, {"keeps": True, "steps": 12, "action": "pause"}),
)
FUNCTIONS: tuple[tuple[str, int, dict[str, Any]], ...] = (
    ("function", 4, {"steps": 6}),
    ("function", 2, {"steps": 5, "keeps": True, "fails": 1}),
    ("parent", 1, {"steps": 2}),
    ("gather", 3, {"steps": 2}),
)


def draw(rng: random.Random, number: int, prefix: str, *, functions: bool) -> Plan:
    """The next task of the mixed load."""
    choices = KINDS + (FUNCTIONS if functions else ())
    kind, _, fields = rng.choices(choices, [weight for _, weight, _ in choices])[0]
    name = f"{prefix}-{number:04}-{kind}"
    made: dict[str, Any] = {"pace": rng.choice([0.05, 0.15, 0.3]), **fields}
    if kind == "slot":
        made["slot"] = f"slot-{rng.randint(1, 3)}"
    return Plan(name, kind, **made)
