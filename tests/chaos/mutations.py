"""`make chaosmutations`: known defects put back, one at a time; the fuzzer or a case must turn red for each.

A mutation edits a copy of a package, which comes first on the path of the tests and of all that they start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.suite import ROOT

HELLOS = ("tests/chaos/test_hellos.py",)
FLEET = ("tests/chaos/test_cases.py", "-k")
SPOOLS = (*FLEET, "spools or keeps_every_promise")
SOURCES = {
    "taskyard_taskdb": "services/taskdb/src",
    "taskyard_scheduler": "services/scheduler/src",
    "taskyard_runner": "services/runner/src",
}


@dataclass(frozen=True)
class Mutation:
    """Edits of files below a package, and the tests of which at least one must fail."""

    name: str
    package: str
    edits: tuple[tuple[str, str, str], ...]
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "a hello lists a task once",
        "taskyard_taskdb",
        (
            (
                "storage/lease/sessions.py",
                "listed = set(hello.held)",
                "listed = set({item.key: item for item in hello.held}.values())",
            ),
        ),
        HELLOS,
    ),
    Mutation(
        "a lease begins to follow a session that is gone",
        "taskyard_taskdb",
        (
            ("domain/rules/holder.py", " and draft.lease.in_session and not pinned", " and not pinned"),
            (
                "storage/transition/lease_rows.sql",
                "    AND (c.expire_time IS NOT NULL OR l.expire_time IS NULL OR EXISTS (\n"
                "        SELECT FROM sessions s"
                " WHERE s.runner_id = l.runner_id AND s.epoch = c.session_epoch\n"
                "    ))\n",
                "",
            ),
        ),
        HELLOS,
    ),
    Mutation(
        "an adopted run loses its name",
        "taskyard_runner",
        (
            (
                "agent/run.py",
                "        spooled.run = self.name\n        self.held = spooled\n",
                "        self.held = spooled\n        spooled.run = self.name\n",
            ),
        ),
        SPOOLS,
    ),
    Mutation(
        "journals that nobody lists are removed",
        "taskyard_runner",
        (("agent/journals.py", "    rescued = []\n", "    return []\n    rescued = []\n"),),
        SPOOLS,
    ),
    Mutation(
        "a transient error acknowledges a checkpoint",
        "taskyard_scheduler",
        (("uploads.py", "if failure is None or is_final(failure):", "if True:"),),
        ("services/scheduler/tests/test_rules_reports.py", "-k", "rule_10"),
    ),
    Mutation(
        "the outcome of an adopted function overtakes its checkpoint",
        "taskyard_runner",
        (
            (
                "agent/function_pool.py",
                "            self._restore_uploads(run)\n            run.started",
                "            run.started",
            ),
        ),
        ("services/runner/tests/test_function_hosts.py", "-k", "waits_for_its_checkpoint"),
    ),
    Mutation(
        "a start after a cancel is charged",
        "taskyard_taskdb",
        (
            (
                "domain/rules/holder.py",
                "charged = draft.task.requested is not Action.CANCEL",
                "charged = True",
            ),
        ),
        HELLOS,
    ),
    Mutation(
        "no generation in the fence",
        "taskyard_taskdb",
        (
            ("domain/lifecycle.py", "if event.generation < task.generation:", "if False:"),
            (
                "domain/lifecycle.py",
                "(lease.lease_id, lease.runner_id) == (event.lease_id, event.runner_id)",
                "lease.runner_id == event.runner_id",
            ),
            ("domain/lifecycle.py", "if event.generation == task.generation and held:", "if held:"),
        ),
        HELLOS,
    ),
    Mutation(
        "a first lease as long as the session",
        "taskyard_taskdb",
        (("storage/claim/claimer.sql", "statement_timestamp() + lease_duration", "NULL::timestamptz"),),
        HELLOS,
    ),
    Mutation(
        "an ended task may be cancelled",
        "taskyard_taskdb",
        (
            (
                "domain/lifecycle.py",
                "    former = draft.task\n",
                "    former = draft.task\n"
                "    if former.phase.terminal and type(event).__name__ == 'CancelRequested':\n"
                "        draft.set(phase=Phase.CANCELLED)\n"
                "        draft.record(ChangeEvent.TASK_CANCELLED, event, former)\n"
                "        return None\n",
            ),
        ),
        HELLOS,
    ),
    Mutation(
        "the spool is not synced",
        "taskyard_runner",
        (("agent/spool.py", "            os.fdatasync(self._writer)\n", ""),),
        ("services/runner/tests/test_spool.py",),
    ),
    Mutation(
        "the output of an aborted run is dropped",
        "taskyard_runner",
        (
            (
                "agent/runs.py",
                "        run.logs_shipped = not self._logs.follows(run.key)\n",
                "        self._logs._tails.pop(run.key, None)\n        run.logs_shipped = True\n",
            ),
        ),
        ("services/runner/tests/test_stops.py", "-k", "shipped_to_its_end"),
    ),
    Mutation(
        "a superseded leader writes",
        "taskyard_taskdb",
        (("sweep/leader_election.py", "        await leader_lock.check(tx, self.term)\n", ""),),
        ("tests/integration/test_crash_leader.py", "-k", "resumes_after_its_term"),
    ),
    Mutation(
        "reports are acknowledged before COMMIT",
        "taskyard_taskdb",
        (
            (
                "storage/report/reports.py",
                "            found, notice = await self._pool.run("
                "lambda tx: self._transact(tx, reports, part))\n",
                "            async with self._pool.transaction() as tx:\n"
                "                found, notice = await self._transact(tx, reports, part)\n"
                "                if Random().random() < 0.2:\n"
                "                    await tx.execute('ROLLBACK', prepare=False)\n",
            ),
        ),
        HELLOS,
    ),
)


def mutate(mutation: Mutation, folder: Path) -> None:
    """Copies the package and edits the copy; fails if a fragment is not there."""
    package = folder / mutation.package
    shutil.copytree(ROOT / SOURCES[mutation.package] / mutation.package, package)
    for file, fragment, instead in mutation.edits:
        text = (package / file).read_text()
        assert fragment in text, f"{mutation.name}: {file} has no {fragment!r}"
        (package / file).write_text(text.replace(fragment, instead))


def is_found(mutation: Mutation) -> tuple[bool, str]:
    """Whether a test fails with the mutation, and the last lines of the tests."""
    with tempfile.TemporaryDirectory(prefix="taskyard-mutation-") as folder:
        mutate(mutation, Path(folder))
        environment = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutation.tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
        )
    return done.returncode == 1, done.stdout[-3000:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="words of the mutations to try; all by default")
    arguments = parser.parse_args()
    missed = 0
    for mutation in MUTATIONS:
        if arguments.names and not any(word in mutation.name for word in arguments.names):
            continue
        begin = time.monotonic()
        found, output = is_found(mutation)
        missed += not found
        verdict = "found" if found else "NOT FOUND"
        print(f"{verdict}: {mutation.name} ({time.monotonic() - begin:.0f} s)", flush=True)
        lines = [line for line in output.splitlines() if line.startswith("E ")]
        print("\n".join(lines[-2:] if found else output.splitlines()[-15:]), flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
