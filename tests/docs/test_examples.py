"""Every program in examples/ runs to its end against the real suite."""

import subprocess

import pytest

from tests.acceptance.suite import BIN, ROOT, Suite, client_environment
from tests.harness.leash import leashed

# Programs that are no clients, such as functions that a runner loads; the tests of their area execute them.
EXECUTED_ELSEWHERE: set[str] = set()
EXAMPLES = ROOT / "examples"
PROGRAMS = sorted(
    str(file.relative_to(EXAMPLES))
    for file in (*EXAMPLES.glob("*.py"), *EXAMPLES.glob("coming_from/[a-z]*.py"))
    if file.name not in EXECUTED_ELSEWHERE
)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_example_runs_to_its_end(suite: Suite, program: str) -> None:
    ended = subprocess.run(
        leashed(BIN / "python", ROOT / "examples" / program),
        cwd=suite.folder,
        env=client_environment(),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 0, f"{ended.stdout}{ended.stderr}\n{suite.logs()}"
    assert ended.stdout


def test_every_example_is_listed() -> None:
    listed = (ROOT / "examples/README.md").read_text()
    for program in PROGRAMS:
        assert f"({program})" in listed, f"examples/README.md does not list {program}"
