"""Presets on the command line: listed, printed, applied, and applied again without an effect."""

from __future__ import annotations

import pytest

from taskyard import presets
from tests.acceptance.suite import Suite


def test_presets_are_listed_with_their_pages_and_printed(suite: Suite) -> None:
    listed = suite.done("presets").splitlines()
    assert [line.split()[0] for line in listed] == ["PRESET", *presets.NAMES]
    assert listed[1].split()[-1] == "docs/howto/coming-from-aiopslab.md"
    assert suite.done("presets", "show", "niyanta") == presets.path("niyanta").read_text()
    assert suite.cli("presets", "show", "nobody").code == 2


@pytest.mark.parametrize("name", presets.NAMES)
def test_a_preset_that_is_applied_again_changes_nothing(suite: Suite, name: str) -> None:
    suite.done("apply", "--preset", name)
    again = suite.cli("apply", "--preset", name)
    assert again.code == 0 and again.err.endswith(" unchanged\n") and "created" not in again.err
    assert "changed," not in again.err
    same = suite.cli("diff", "--preset", name)
    assert (same.code, same.out) == (0, "")


def test_an_external_task_is_reported_on_by_its_owner(suite: Suite) -> None:
    suite.done("apply", "--preset", "global-tasks")
    task = suite.done("submit", "--type", "node_addition", "--payload", '{"nodes": 3}').strip()
    running = suite.done("report", task, "in_progress", "--percent", "50", "--details", '{"added": 1}')
    assert running == f"{task}  RUNNING\n"
    assert suite.done("report", task, "--details", '{"added": 3}').endswith("RUNNING\n")
    assert suite.done("report", task, "completed", "--result", '{"ok": true}').endswith("SUCCEEDED\n")
    shown = suite.done("get", task, "-o", "json")
    assert '"added": 3' in shown
    for wrong in (("report", task, "sideways"), ("report", task, "--details", "[1]")):
        assert suite.cli(*wrong).code == 2
    assert suite.cli("report", task, "failed").code != 0


def test_the_flags_of_a_spec_reach_the_task(suite: Suite) -> None:
    flags = "--entity planner/p9 --max-steps 7 --selector zone=x,!spot --avoid-type film --prefer runner:r@80"
    task = suite.done("submit", *flags.split(), "--", "true").strip()
    shown = suite.done("get", task, "-o", "yaml")
    for expected in ("planner", "p9", "maxSteps: 7", "zone: x", "DOES_NOT_EXIST", "film", "weight: 80"):
        assert expected in shown
    suite.done("cancel", task)
