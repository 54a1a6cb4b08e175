"""Finds SQL that decides about tasks without a test that compares it with the lifecycle.

Every statement, and every function of the schema, that writes `tasks` or `leases` either decides a row of the
state machine, which then names it, or stores what Python has decided, or repairs damage. For each row and
statement one test carries the mark `@pytest.mark.equivalence(row, statement)`. Ends with 1 and a line for
each finding when something is missing.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from taskyard_taskdb.domain.lifecycle import TABLE
from taskyard_taskdb.domain.row import Row
from taskyard_taskdb.storage.schema.base import functions
from taskyard_taskdb.storage.statements import statements

TESTS = Path("services/taskdb/tests")

# Statements that store transitions of the lifecycle.
STORES = frozenset(
    {
        "delete_tasks",
        "edit_documents",
        "edit_tasks",
        "end_runs",
        # When a lease ends that its runner has dropped; the sweep decides what follows.
        "expire_dropped",
        "insert_leases",
        # Flags of dependencies, which decide nothing by themselves.
        "mark_prerequisite_leases",
        "mark_prerequisites",
        "replace_spec",
        "set_blocked",
        "set_limited",
        "update_leases",
        "update_tasks",
    }
)
# Statements that repair damage, or fence everything after a backup was restored.
REPAIRS = frozenset(
    {
        "doctor_delete_leases",
        "doctor_raise_versions",
        "doctor_redistribute",
        "doctor_set_ready",
        "revoke_all_leases",
    }
)

_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|COPY) (?:tasks|leases)\b")

Pair = tuple[str, str]


def findings(rows: Iterable[Row], sql: Mapping[str, str], marks: frozenset[Pair]) -> Iterator[str]:
    """What is wrong, one line each."""
    decided = {(row.name, name) for row in rows for name in row.sql}
    names = {name for _, name in decided}
    for name in sorted((names | STORES | REPAIRS) - set(sql)):
        yield f"statement {name} does not exist; remove it from its row or from tools/equivalence.py"
    for name in sorted(name for name, text in sql.items() if _WRITES.search(text)):
        if name not in names | STORES | REPAIRS:
            yield (
                f"statement {name} writes tasks or leases and no row of the state machine names it; "
                "name it in the row's `sql`, or in tools/equivalence.py if it stores what Python has decided"
            )
    for row, name in sorted(decided - marks):
        yield (
            f"row {row} is decided by statement {name} without a test; "
            f'write one that is marked @pytest.mark.equivalence("{row}", "{name}")'
        )
    for row, name in sorted(marks - decided):
        yield f'a test is marked equivalence("{row}", "{name}"), but row {row} does not name {name}'


def find_marks(folder: Path) -> frozenset[Pair]:
    """The marks of all test functions below a folder."""
    trees = (ast.parse(path.read_text()) for path in sorted(folder.rglob("test_*.py")))
    return frozenset(pair for tree in trees for pair in _marks(tree))


def _marks(tree: ast.Module) -> Iterator[Pair]:
    for function in tree.body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.equivalence":
                    row, name = (ast.literal_eval(argument) for argument in mark.args)
                    yield row, name


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the findings of a checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    options = parser.parse_args(arguments)
    found = list(findings(TABLE, {**statements(), **functions()}, find_marks(options.root / TESTS)))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
