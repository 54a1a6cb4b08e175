"""Commands for many tasks, and files of resources, against the real suite."""

import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, Suite, client_environment
from tests.acceptance.terminal import on_terminal

# `make volume` asks for 100,000.
VOLUME = int(os.environ.get("TASKYARD_VOLUME", "3000"))
# Longest time of 100,000 creates on two cores, with the start of the command and its bar.
CREATE_SECONDS = 15.0
IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The memory that a list of any length may need beyond one page of a thousand.
LIST_GROWTH_MB = 60


def write(suite: Suite, name: str, text: str) -> str:
    (suite.folder / name).write_text(text)
    return name


def mark() -> str:
    return uuid.uuid4().hex[:8]


def of(label: str) -> str:
    return f'metadata.labels.m = "{label}"'


def test_submit_creates_the_tasks_of_a_file(suite: Suite) -> None:
    m = mark()
    yaml = (
        f"command: [echo, one]\nlabels: {{m: {m}}}\n---\nscript: echo two\nid: two-{m}\nlabels: {{m: {m}}}\n"
    )
    ended = suite.cli("submit", "--file", write(suite, "tasks.yaml", yaml))
    assert (ended.code, ended.err) == (0, "Created 2 tasks.\n")
    first, second = ended.out.split()
    assert second == f"two-{m}"
    assert suite.done("wait", first, second).count("SUCCEEDED") == 2
    assert suite.done("logs", second) == "two\n"
    lines = "".join(json.dumps({"command": ["true"], "labels": {"m": m + "j"}}) + "\n" for _ in range(40))
    assert len(suite.done("submit", "-f", write(suite, "tasks.jsonl", lines)).split()) == 40
    assert len(suite.done("list", "--filter", of(m + "j"), "-o", "name").split()) == 40


def test_submit_makes_one_task_of_each_line(suite: Suite) -> None:
    m = mark()
    write(suite, "names.txt", "a b\n\nc\n")
    made = suite.done("submit", "--each", "names.txt", "-l", f"m={m}", "--", "echo", "hello {}").split()
    assert len(made) == 2
    suite.done("wait", *made)
    assert [suite.done("logs", task) for task in made] == ["hello a b\n", "hello c\n"]
    write(suite, "greet.sh", 'echo "good day $1"')
    write(suite, "people.txt", "ann\nbob\n")
    greeted = ("--each", "people.txt", "--script", "greet.sh", "--id", f"{m}-{{}}")
    assert suite.done("submit", *greeted).split() == [f"{m}-ann", f"{m}-bob"]
    suite.done("wait", f"{m}-ann", f"{m}-bob")
    assert suite.done("logs", f"{m}-bob") == "good day bob\n"


def test_a_refused_task_of_a_batch_does_not_stop_the_others(suite: Suite) -> None:
    ended = suite.cli(
        "submit", "-f", write(suite, "mixed.yaml", "command: a\nslot: 'b c'\n---\ncommand: 'true'\n")
    )
    assert ended.code == 1 and len(ended.out.split()) == 1
    refusal, count = ended.err.splitlines()
    assert refusal.startswith("taskyard: task 1: ") and "slot" in refusal
    assert count == "Created 1 task; 1 refused."


def test_a_mistake_in_a_file_is_reported_with_line_and_column(suite: Suite) -> None:
    for command in ("submit", "apply"):
        ended = suite.cli(command, "-f", write(suite, "bad.yaml", "kind: Task\nid: x\ncommand: [a\n"))
        assert ended.code == 2
        assert ended.err.startswith("taskyard: bad.yaml:4:1: ") and ended.err.count("\n") == 1


@pytest.mark.parametrize("option", ["--file", "--each", "--script"])
def test_a_file_that_is_not_text_is_a_one_line_error(suite: Suite, option: str) -> None:
    (suite.folder / "noise").write_bytes(b"ab\xff\xfe\n")
    ended = suite.cli("submit", option, "noise", *(("--", "echo") if option == "--each" else ()))
    assert ended.code == 2 and "not UTF-8" in ended.err and ended.err.count("\n") == 1


def test_values_that_cannot_be_stored_are_one_line_errors(suite: Suite) -> None:
    (suite.folder / "nul.txt").write_bytes(b"a\0b\n")
    ended = suite.cli("submit", "--each", "nul.txt", "--", "echo")
    assert ended.code == 1 and "args[0]: must not contain NUL" in ended.err
    for name in ("../../etc/passwd", ""):
        ended = suite.cli("get", name)
        assert ended.code == 2 and "letters, digits" in ended.err and ended.err.count("\n") == 1


def test_cancel_and_retry_by_filter(suite: Suite) -> None:
    m = mark()
    write(suite, "five.txt", "1\n2\n3\n4\n5\n")
    made = suite.done(
        "submit", "--each", "five.txt", "-l", f"m={m}", "--", "sh", "-c", "sleep 1000 # {}"
    ).split()
    ended = suite.cli("cancel", "--filter", of(m), "--grace", "0s", "--yes")
    assert (ended.code, sorted(ended.out.split()), ended.err) == (0, sorted(made), "5 tasks cancelled.\n")
    assert suite.cli("wait", *made).out.count("CANCELLED") == 5
    assert suite.cli("cancel", "--filter", of(m)).err == "No task matches.\n"
    assert suite.cli("retry", "--filter", of(m), "--yes").err == "5 tasks retried.\n"
    suite.done("cancel", "--filter", of(m), "--yes")
    assert suite.cli("cancel").code == 2
    assert suite.cli("cancel", "--filter", of(m), made[0]).code == 2


def test_wait_takes_a_filter_and_a_time(suite: Suite) -> None:
    m = mark()
    task = suite.done("submit", "-l", f"m={m}", "--", "sleep", "1000").strip()
    ended = suite.cli("wait", "--filter", of(m), "--timeout", "300ms")
    assert ended.code == 124 and "still live" in ended.err and "`taskyard explain`" in ended.err
    suite.done("cancel", "--grace", "0s", task)
    ended = suite.cli("wait", "--filter", of(m))
    assert ended.code in (0, 1)


def test_apply_creates_the_resources_of_a_file_and_is_idempotent(suite: Suite) -> None:
    name = f"applied-{mark()}"
    text = f"kind: Task\nid: {name}\ncommand: [sleep, 1000]\nlabels: {{a: b}}\n"
    file = write(suite, "apply.yaml", text)
    dry = suite.cli("apply", "-f", file, "--dry-run")
    assert (dry.code, dry.out) == (0, f"Task {name}  would be created\n")
    assert suite.cli("get", name).code == 5
    assert suite.done("apply", "-f", file) == f"Task {name}  created\n"
    assert suite.done("apply", "-f", file) == f"Task {name}  unchanged\n"
    write(suite, "apply.yaml", text.replace("a: b", "a: c, d: e"))
    shown = f"Task {name}  would be changed\n  ~ metadata.labels.a: b → c\n  + metadata.labels.d: e\n"
    assert suite.done("apply", "-f", file, "--dry-run") == shown
    assert suite.done("apply", "-f", file) == shown.replace("would be changed", "changed")
    assert suite.done("apply", "-f", file) == f"Task {name}  unchanged\n"
    assert json.loads(suite.done("get", name, "-o", "json"))["metadata"]["labels"] == {"a": "c", "d": "e"}
    suite.done("cancel", "--grace", "0s", name)
    ended = suite.cli("apply", "-f", write(suite, "none.yaml", "kind: Task\ncommand: a\n"))
    assert ended.code == 2 and "needs an id" in ended.err


def test_bench_measures_and_leaves_nothing_behind(suite: Suite) -> None:
    shown = suite.done("bench", "-n", "20", "--", "echo", "x")
    fields = dict(re.split(r"  +", line, maxsplit=1) for line in shown.splitlines())
    assert fields["tasks"] == "20, 20 succeeded"
    assert list(fields) == ["tasks", "created", "done", "create to start", "start to end", "create to end"]
    assert suite.done("list", "--filter", "metadata.labels:taskyard-bench", "-o", "name") == ""


def test_yaml_round_trips(suite: Suite) -> None:
    import yaml

    task = suite.done("submit", "--", "true").strip()
    assert yaml.safe_load(suite.done("get", task, "-o", "yaml"))["metadata"]["id"] == task
    (listed,) = yaml.safe_load_all(suite.done("list", "-n", "1", "-o", "yaml"))
    assert listed["metadata"]["id"]


@pytest.mark.timeout(400)
def test_many_tasks_are_created_with_a_bar_and_listed_without_growing_memory(suite: Suite) -> None:
    m = mark()
    # Held back by a label that no runner has, so that nothing is measured but creating and listing.
    (suite.folder / "numbers.txt").write_text("".join(f"{n}\n" for n in range(VOLUME)))
    options = ("--label", f"m={m}", "--runner-label", "nowhere=yes", "--", "echo")
    with (
        timed(f"creating {VOLUME:,} tasks") as creating,
        on_terminal(suite.folder, "submit", "--each", "numbers.txt", *options) as terminal,
    ):
        drawn = terminal.read_all()
        assert terminal.process.returncode == 0, drawn[-4000:]
    assert "Creating tasks" in drawn and f"{VOLUME}/{VOLUME}" in drawn
    assert f"Created {VOLUME} tasks." in drawn
    assert len(set(IDS.findall(drawn))) == VOLUME
    with timed("listing a thousand"):
        few = _listed(suite, m, "--limit", "1000")
    with timed(f"listing {VOLUME:,}"):
        some = _listed(suite, m, "--all")
    print(f"the short list took {few[1]:.0f} MB, the long one {some[1]:.0f} MB", flush=True)
    assert (few[0], some[0]) == (min(VOLUME, 1000), VOLUME)
    assert some[1] - few[1] < LIST_GROWTH_MB
    with timed(f"cancelling {VOLUME:,}"):
        assert suite.cli("cancel", "--filter", of(m), "-y").err == f"{VOLUME} tasks cancelled.\n"
    # `make volume` runs alone on the machine.
    assert "TASKYARD_VOLUME" not in os.environ or creating.seconds < VOLUME * CREATE_SECONDS / 100_000


@dataclass
class Timed:
    """How long something took, once it is done."""

    seconds: float = 0.0


@contextmanager
def timed(what: str) -> Iterator[Timed]:
    """Prints a step and its duration; `make volume` shows the lines as they are printed."""
    print(f"{what} …", end=" ", flush=True)
    began = time.monotonic()
    timed = Timed()
    yield timed
    timed.seconds = time.monotonic() - began
    print(f"{timed.seconds:.1f} s", flush=True)


def _listed(suite: Suite, m: str, *arguments: str) -> tuple[int, float]:
    """How many names a list prints, and how many MB of memory it took at most."""
    program = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);" + (
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, file=sys.stderr)"
    )
    ended = subprocess.run(
        [
            BIN / "python",
            "-c",
            program,
            BIN / "taskyard",
            "list",
            "--filter",
            of(m),
            "-o",
            "name",
            *arguments,
        ],
        cwd=suite.folder,
        env=client_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.count("\n"), float(ended.stderr.splitlines()[-1])


def test_a_closed_terminal_ends_the_command_but_not_the_task(suite: Suite, tmp_path: Path) -> None:
    task = f"orphan-{mark()}"
    go = ("sh", "-c", "echo started; sleep 3; echo finished")
    with on_terminal(suite.folder, "run", "--id", task, "--", *go) as terminal:
        terminal.read_until("started")
        terminal.hang_up()
        assert terminal.process.wait(30) != 0
    assert suite.done("wait", task) == f"{task}  SUCCEEDED\n"


def test_submit_after_waits_passes_results_on_and_a_cascading_retry_revives(suite: Suite) -> None:
    m = mark()
    suite.done("submit", "--id", f"a-{m}", "--", "sh", "-c", 'echo 42 > "$TASKYARD_RESULT_FILE"')
    read = 'cat "$TASKYARD_INPUTS_DIR/answer.json"; ls "$TASKYARD_INPUTS_DIR"'
    suite.done("submit", "--id", f"b-{m}", "--after", f"answer=a-{m}", "--", "sh", "-c", read)
    assert "SUCCEEDED" in suite.done("wait", f"b-{m}")
    assert suite.done("logs", f"b-{m}").split() == ["42", "answer.json"]
    suite.done("submit", "--id", f"bad-{m}", "--retries", "0", "--runner-label", "zone=moon", "--", "false")
    suite.done("submit", "--id", f"then-{m}", "--after", f"bad-{m},a-{m}", "--", "true")
    assert f"bad-{m}, a-{m}" in suite.done("get", f"then-{m}")
    suite.done("submit", "--id", f"else-{m}", "--after", f"bad-{m}:not_succeeded", "--", "true")
    assert "other tasks" in suite.done("get", f"then-{m}")
    assert f"bad-{m}" in suite.cli("explain", f"then-{m}").out
    suite.done("cancel", f"bad-{m}")
    assert "CANCELLED" in suite.cli("wait", f"then-{m}").out
    assert "SUCCEEDED" in suite.done("wait", f"else-{m}")
    assert "DEPENDENCY_FAILED" in suite.done("get", f"then-{m}")
    refused = suite.cli("retry", f"then-{m}")
    assert refused.code != 0 and "cascade" in refused.err
    suite.done("retry", f"bad-{m}", "--cascade")
    for _ in range(300):
        if "PENDING" in suite.done("get", f"then-{m}"):
            break
        time.sleep(0.1)
    assert "other tasks" in suite.done("get", f"then-{m}")
    suite.done("cancel", f"bad-{m}")
    unknown = suite.cli("submit", "--after", f"none-{m}", "--", "true")
    assert unknown.code != 0 and f"none-{m}" in unknown.err
    assert "moon" in suite.cli("submit", "--after", f"a-{m}:moon", "--", "true").err


def test_apply_creates_a_graph_in_order_and_names_a_cycle(suite: Suite) -> None:
    m = mark()
    graph = (
        f"kind: Task\nid: z-{m}\ncommand: 'true'\n"
        f"after: [x-{m}, {{task: y-{m}, when: ended, alias: y}}]\n---\n"
        f"kind: Task\nid: y-{m}\ncommand: 'true'\nafter: x-{m}\n---\n"
        f"kind: Task\nid: x-{m}\ncommand: 'true'\n"
    )
    file = write(suite, "graph.yaml", graph)
    dry = suite.cli("apply", "-f", file, "--dry-run")
    assert dry.code == 0 and dry.out.count("would be created") == 3, dry.err
    made = [line.split()[1] for line in suite.done("apply", "-f", file).splitlines()]
    assert made == [f"x-{m}", f"y-{m}", f"z-{m}"]
    assert "SUCCEEDED" in suite.done("wait", f"z-{m}")
    assert suite.done("apply", "-f", file).count("unchanged") == 3
    cycle = graph.replace(f"id: x-{m}\n", f"id: x-{m}\nafter: [z-{m}]\n").replace(f"-{m}", f"-{m}c")
    ended = suite.cli("apply", "-f", write(suite, "cycle.yaml", cycle))
    assert ended.code != 0 and "wait for each other" in ended.err and f"x-{m}c" in ended.err
    assert suite.cli("get", f"x-{m}c").code != 0
