"""Every guarantee, every fault and every promise against an attacker names tests, and those exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests", "services", "clients")


def existing_tests() -> set[str]:
    return {
        name
        for folder in FOLDERS
        for pattern in ("test_*.py", "heavy_*.py")
        for file in (ROOT / folder).rglob(pattern)
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE)
    }


def test_each_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs/guarantees.md").read_text()
    guarantees = re.split(r"^\*\*(?=G\d+\.)", text.partition("## What it does not")[0], flags=re.MULTILINE)[
        1:
    ]
    assert [int(re.match(r"G(\d+)", one)[1]) for one in guarantees] == list(range(1, len(guarantees) + 1))  # type: ignore[index]
    existing = existing_tests()
    for one in guarantees:
        named = re.findall(r"`(test_\w+)`", one)
        assert len(named) >= 2, f"{one[:40]} has too few tests"
        assert not set(named) - existing, f"{one[:40]} names {sorted(set(named) - existing)}"


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_each_promise_against_an_attacker_names_tests_that_exist() -> None:
    text = (ROOT / "docs/security.md").read_text()
    attackers = [row[0] for row in rows_of(text, "Attackers")]
    promises, limits = rows_of(text, "What holds"), rows_of(text, "What does not hold")
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = existing_tests() | {f"make {target}" for target in targets}
    for attacker, promise, tests in promises:
        named = re.findall(r"`([^`]+)`", tests)
        assert attacker in attackers and promise, attacker
        assert named and re.sub(r"`[^`]+`", "", tests).strip() == "", f"{promise}: only tests, at least one"
        assert not set(named) - known, f"{promise} names {sorted(set(named) - known)}"
    assert len(attackers) == len(set(attackers)) >= 10
    assert {row[0] for row in promises} == set(attackers), "each attacker has a promise with its tests"
    for attacker, ability, remedy in limits:
        assert attacker in attackers and ability and remedy, attacker
    assert {row[0] for row in limits} == set(attackers), "for each attacker, what does not hold"


def test_each_fault_names_tests_that_exist_or_what_it_needs() -> None:
    text = (ROOT / "docs/faults.md").read_text()
    rows = re.findall(r"^\| (\d+) (.*) \|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 66))
    existing = existing_tests()
    for number, row in rows:
        named = set(re.findall(r"`(test_\w+)`", row))
        assert named or " needs " in row, f"fault {number} has neither a test nor a reason"
        assert not named - existing, f"fault {number} names {sorted(named - existing)}"
