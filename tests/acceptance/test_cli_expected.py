"""What people expect of a command line that have used others: each word and flag, and what it does."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import click
import pytest

from taskyard.cli.group import ALIASES, taskyard
from tests.acceptance.suite import BIN, Suite, client_environment
from tests.acceptance.terminal import on_terminal
from tests.acceptance.test_cli import new_id, submit

# The first test of the session starts the suite, on a machine that may be busy.
pytestmark = pytest.mark.timeout(400)

# The commands, and the options that each must have.
EXPECTED = {
    "version": ("--client", "-o"),
    "login": ("--address", "--name"),
    "whoami": ("-o",),
    "config": (),
    "config use": (),
    "config show": (),
    "config delete": (),
    "edit": (),
    "update": ("--label", "--priority"),
    "diff": ("--file",),
    "apply": ("--file", "--dry-run"),
    "open": ("--print",),
    "list": ("-l", "-w", "--watch", "--sort", "--all-tenants", "--filter", "-o"),
    "get": ("-o",),
    "watch": ("-l", "--filter"),
    "cancel": ("--filter", "-l", "--yes", "--dry-run"),
    "retry": ("--filter", "-l", "--yes", "--dry-run"),
    "delete": ("--filter", "-l", "--yes", "--dry-run"),
    "wait": ("--for", "--timeout", "-l"),
    "logs": ("-l", "--since", "--tail", "--timestamps", "--prefix", "--follow"),
    "run": ("--detach", "--delay"),
    "submit": ("--delay", "--file"),
    "webhooks": ("-o",),
    "webhooks secret": ("--rotate",),
    "help": (),
    "completion": (),
}


def found(words: str) -> click.Command:
    """The command of these words; fails if there is none."""
    command: click.Command | None = taskyard
    context = click.Context(taskyard)
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
        assert command is not None, f"there is no command {words}"
    assert command is not None
    return command


def options(command: click.Command) -> dict[str, click.Parameter]:
    return {name: param for param in command.params for name in (*param.opts, *param.secondary_opts)}


@pytest.mark.parametrize("words", EXPECTED)
def test_the_expected_command_and_its_flags_exist(words: str) -> None:
    missing = [name for name in EXPECTED[words] if name not in options(found(words))]
    assert not missing, f"taskyard {words} has no {', '.join(missing)}"
    assert found(words).help


def test_every_command_can_be_debugged_and_pointed_elsewhere() -> None:
    context = click.Context(taskyard)
    for name in taskyard.list_commands(context):
        known = options(found(name))
        assert {"--debug", "-v", "--tenant", "--context"} <= known.keys(), name
    assert {"--patience", "--debug", "--context"} <= options(taskyard).keys()


def every_command(group: click.Group, words: str = "") -> list[tuple[str, click.Command]]:
    commands = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        commands.append((f"{words}{name}", command))
        if isinstance(command, click.Group):
            commands += every_command(command, f"{words}{name} ")
    return commands


def test_short_options_mean_the_same_everywhere() -> None:
    meanings: dict[str, set[str]] = {}
    for words, command in every_command(taskyard):
        for param in command.params:
            names = [name for name in param.opts if name.startswith("--")]
            for short in (name for name in param.opts if re.fullmatch("-[a-zA-Z]", name)):
                meanings.setdefault(short, set()).add(names[0] if names else words)
    assert meanings["-f"] == {"--file"}
    assert meanings["-l"] == {"--label"} and meanings["-o"] == {"--output"} and meanings["-v"] == {"--debug"}


def test_aliases_and_help(suite: Suite) -> None:
    assert ALIASES == {"ls": "list", "rm": "delete"}
    task = submit(suite, "alias", "--", "true")
    suite.done("wait", task)
    assert task in suite.done("ls", "-o", "name").split()
    assert suite.done("rm", task) == f"{task}  deleted\n"
    assert suite.done("help", "runners", "label") == suite.done("runners", "label", "--help")
    ended = suite.cli("help", "lst")
    assert ended.code == 2 and "Did you mean 'list'" in ended.err


def test_many_tasks_are_changed_only_after_a_question(suite: Suite) -> None:
    team = new_id("team")
    tasks = {
        submit(suite, "bulk", "-l", f"team={team}", "--runner-label", "zone=moon", "--", "true")
        for _ in "abc"
    }
    for verb, done in (
        ("cancel", "cancelled"),
        ("retry", "retried"),
        ("cancel", "cancelled"),
        ("delete", "deleted"),
    ):
        ended = suite.cli(verb, "-l", f"team={team}")
        assert (ended.code, ended.out) == (2, "") and f"3 tasks would be {done}; give --yes" in ended.err
        dry = suite.cli(verb, "-l", f"team={team}", "--dry-run")
        assert (dry.code, set(dry.out.split())) == (0, tasks) and "nothing was changed" in dry.err
        with on_terminal(suite.folder, verb, "--filter", f'metadata.labels.team = "{team}"') as terminal:
            terminal.read_until(f"3 tasks will be {done}. Continue? [y/N]")
            terminal.press("n\n")
            terminal.read_all()
            assert terminal.process.returncode == 130
        ended = suite.cli(verb, "-l", f"team={team}", "--yes")
        assert (ended.code, set(ended.out.split()), ended.err) == (0, tasks, f"3 tasks {done}.\n")
    assert suite.done("list", "-l", f"team={team}", "-o", "name") == ""


def test_one_task_is_counted_as_one(suite: Suite) -> None:
    team = new_id("team")
    submit(suite, "single", "-l", f"team={team}", "--runner-label", "zone=moon", "--", "true")
    assert suite.cli("cancel", "-l", f"team={team}", "--yes").err == "1 task cancelled.\n"


def test_the_tenant_is_that_of_the_key(suite: Suite) -> None:
    tenant = new_id("acme")
    suite.done("tenants", "create", tenant, "--tier", "free")
    key = suite.cli("keys", "create", "--for", tenant).out.strip()
    where = {"TASKYARD_ADDRESS": suite.context["address"], "TASKYARD_KEY": key}
    shown = suite.cli("whoami", **where)
    assert shown.code == 0 and re.search(rf"^tenant +{tenant}$", shown.out, re.MULTILINE)
    made = suite.cli("submit", "--id", "theirs", "--", "true", **where)
    assert (made.code, made.out) == (0, "theirs\n")
    assert suite.cli("list", "-o", "name", **where).out == "theirs\n"
    assert suite.cli("status", **where).code == 0
    # The context of `up` has an administrator's key, which may name any tenant.
    assert suite.done("--tenant", tenant, "list", "-o", "name") == "theirs\n"
    assert suite.done("list", "--tenant", tenant, "-o", "name") == "theirs\n"
    assert f"tenants/{tenant}/tasks/theirs" in suite.done("list", "-A", "--all", "-o", "name").split()
    other = suite.cli("--tenant", "default", "list", **where)
    assert other.code == 5 and "`taskyard whoami` shows the key's tenant" in other.err
    assert tenant in suite.done("keys")


def test_login_stores_a_context_and_config_switches_between_them(suite: Suite, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}

    def elsewhere(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "taskyard", *words],
            cwd=tmp_path,
            env={**client_environment(), **home},
            input=given,
            text=True,
            capture_output=True,
            timeout=120,
        )

    address, key = suite.context["address"], suite.context["key"]
    made = elsewhere("login", "--address", address, "--name", "here", given=f"{key}\n")
    assert made.returncode == 0 and "Context here is in use" in made.stdout, made.stderr
    file = tmp_path / ".config/taskyard/config.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert elsewhere("list", "-o", "name", "-n", "1").returncode == 0
    bad = elsewhere("login", "--address", address, "--name", "bad", given="ty_no_key\n")
    assert bad.returncode == 4 and "bad" not in file.read_text()
    (tmp_path / ".config/taskyard/config.toml").write_text(
        file.read_text() + '\n[contexts.gone]\naddress = "127.0.0.1:1"\nkey = "k"\n'
    )
    listed = elsewhere("config").stdout.splitlines()
    assert listed[0].split() == ["CONTEXT", "ADDRESS", "TENANT"]
    assert [line.split()[:2] for line in listed[1:]] == [["*", "here"], ["gone", "127.0.0.1:1"]]
    assert elsewhere("config", "use", "gone").returncode == 0
    assert elsewhere("--patience", "0", "list").returncode == 3
    assert elsewhere("--context", "here", "list", "-n", "1", "-o", "name").returncode == 0
    shown = elsewhere("config", "show", "here").stdout
    assert key not in shown and address in shown
    assert elsewhere("config", "delete", "gone").stdout == "gone  deleted\n"
    assert elsewhere("config", "use", "gone").returncode == 5


def test_versions_of_client_and_server(suite: Suite) -> None:
    versions = json.loads(suite.done("version", "-o", "json"))
    assert versions["client"] == versions["server"]
    alone = suite.cli("version", "-o", "json", TASKYARD_ADDRESS="127.0.0.1:1")
    assert alone.code == 3 and "no server answers" in json.loads(alone.out)["server"]


def test_open_prints_the_address_of_the_console(suite: Suite) -> None:
    link = suite.done("open", "--print")
    assert re.fullmatch(re.escape(suite.context["gateway"]) + r"/#/\?code=ty_\w+\n", link)


def test_update_and_edit_change_a_task(suite: Suite) -> None:
    task = submit(
        suite,
        "edit",
        "-l",
        "a=1",
        "-l",
        "b=2",
        "--payload",
        '{"x": 1}',
        "--runner-label",
        "zone=moon",
        "--",
        "true",
    )
    assert suite.done("update", task, "--priority", "77", "-l", "a=", "-l", "c=3") == f"{task}  changed\n"
    shown = json.loads(suite.done("get", task, "-o", "json"))
    assert shown["spec"]["priority"] == 77 and shown["metadata"]["labels"] == {"b": "2", "c": "3"}
    assert suite.cli("edit", task, EDITOR="true").err == "Nothing was changed.\n"
    editor = suite.folder / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/priority: 77/priority: 99/; s/x: 1/x: 2/" "$1"\n')
    editor.chmod(0o755)
    edited = suite.cli("edit", task, EDITOR=str(editor))
    assert (edited.code, edited.out.splitlines()[-1]) == (0, f"{task}  changed"), edited.err
    shown = json.loads(suite.done("get", task, "-o", "json"))
    assert shown["spec"]["priority"] == 99
    assert suite.done("get", task, "-o", "jsonpath={.spec.priority} {.metadata.labels.b}") == "99 2\n"
    suite.done("cancel", task)


def test_dry_run_and_diff_are_refused_as_apply_is(suite: Suite) -> None:
    name = new_id("tenant")
    (suite.folder / "bad.yaml").write_text(f"kind: Tenant\nid: {name}\n")
    applied, dry, diff = (
        suite.cli(*words, "-f", "bad.yaml") for words in (["apply"], ["apply", "--dry-run"], ["diff"])
    )
    assert applied.code == dry.code == diff.code == 1
    assert applied.err == dry.err == diff.err and f"bad.yaml:1:1: Tenant {name} would be refused" in dry.err
    task = new_id("task")
    (suite.folder / "task.yaml").write_text(f"kind: Task\nid: {task}\ncommand: ['true']\nslot: 'a b'\n")
    dry = suite.cli("apply", "--dry-run", "task.yaml")
    assert dry.code == 1 and "would be refused" in dry.err and "spec.slot" in dry.err
    (suite.folder / "good.yaml").write_text(
        f"kind: TaskType\nid: {name}\nexecution: {{command: {{program: 'true'}}}}\n---\n"
        f"kind: Task\nid: {task}\ntype: {name}\n"
    )
    dry = suite.cli("diff", "-f", "good.yaml")
    assert dry.code == 1 and f"Task {task}  would be created (checked once its type is applied)" in dry.out
    suite.done("apply", "-f", "good.yaml")
    same = suite.cli("diff", "-f", "good.yaml")
    assert (same.code, same.out) == (0, "")


def test_lists_are_sorted_and_printed_for_programs(suite: Suite) -> None:
    team = new_id("team")
    made = [
        submit(
            suite,
            f"p{n}",
            "-l",
            f"team={team}",
            "--priority",
            str(n),
            "--runner-label",
            "zone=moon",
            "--",
            "true",
        )
        for n in (5, 1, 9)
    ]
    listed = suite.done("list", "-l", f"team={team}", "--sort", "-priority", "-o", "name").split()
    assert listed == [made[2], made[0], made[1]]
    assert suite.done("list", "-l", f"team={team}", "--sort", "created", "-o", "name").split() == made
    head, *rows = suite.done("list", "-l", f"team={team}", "-o", "csv").splitlines()
    assert head == "task,phase,created,took,attempt,runner,type,labels,what"
    assert len(rows) == 3 and rows[0].startswith(f"{made[2]},PENDING,")
    pairs = suite.done("list", "-l", f"team={team}", "-o", "jsonpath={.metadata.id}={.spec.priority}")
    assert pairs.split() == [f"{made[2]}=9", f"{made[1]}=1", f"{made[0]}=5"]
    ended = suite.cli("list", "-o", "jsonpath={.a")
    assert ended.code == 2 and "braces" in ended.err
    several = json.loads(suite.done("get", made[0], made[1], "-o", "json"))
    assert [task["metadata"]["id"] for task in several] == made[:2]
    one_missing = suite.cli("get", made[0], "no-such-task", "-o", "name")
    assert (one_missing.code, one_missing.out) == (5, f"{made[0]}\n")
    suite.done("cancel", "-l", f"team={team}", "--yes")


def test_list_watch_shows_the_tasks_and_then_their_changes(suite: Suite) -> None:
    team = new_id("team")
    task = submit(suite, "watched", "-l", f"team={team}", "--runner-label", "zone=moon", "--", "true")
    process = suite.start_cli("list", "-w", "-l", f"team={team}")
    assert process.stdout is not None
    assert process.stdout.readline().split()[0] == "TASK"
    assert process.stdout.readline().split()[:2] == [task, "PENDING"]
    suite.done("cancel", task)
    assert process.stdout.readline().split()[:2] == [task, "CANCELLED"]
    process.kill()
    process.communicate()
    assert process.returncode


def test_wait_for_a_phase_and_without_time(suite: Suite) -> None:
    task = submit(suite, "phase", "--runner-label", "zone=moon", "--", "true")
    assert suite.done("wait", "--for", "phase=pending", task) == f"{task}  PENDING\n"
    waiting = suite.start_cli("wait", "--for", "phase=cancelled", task)
    suite.done("cancel", task)
    out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, out.split()[:2]) == (0, [task, "CANCELLED"])
    assert suite.cli("wait", "--for", "phase=running", task).code == 1
    assert suite.cli("wait", "--for", "phase=done", task).code == 2
    ended = submit(suite, "ended", "--", "true")
    suite.done("wait", ended)
    assert suite.done("wait", "--timeout", "0s", ended) == f"{ended}  SUCCEEDED\n"


def test_logs_of_several_tasks(suite: Suite) -> None:
    team = new_id("team")
    first = submit(suite, "one", "-l", f"team={team}", "--", "sh", "-c", "echo a; echo b")
    second = submit(suite, "two", "-l", f"team={team}", "--", "echo", "c")
    suite.done("wait", first, second)
    assert suite.done("logs", first, second).splitlines() == [f"{first}  a", f"{first}  b", f"{second}  c"]
    assert suite.done("logs", "-l", f"team={team}", "--tail", "1", "--no-prefix").splitlines() == ["b", "c"]
    assert suite.done("logs", first, "--prefix").splitlines() == [f"{first}  a", f"{first}  b"]
    stamped = suite.done("logs", first, "--timestamps", "--since", "1h").splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z [ab]$", line) for line in stamped) and len(stamped) == 2
    assert suite.done("logs", first, "--since", "0s") == ""
    assert sorted(suite.done("logs", "-F", first, second).split()) == sorted(
        [first, "a", first, "b", second, "c"]
    )


def test_run_detached_and_delayed(suite: Suite) -> None:
    task = suite.done("run", "--detach", "--delay", "10m", "--", "true").strip()
    shown = json.loads(suite.done("get", task, "-o", "json"))
    assert shown["status"]["pendingReason"] == "PENDING_REASON_DELAYED"
    suite.done("cancel", task)


def test_an_ended_task_shows_its_runner(suite: Suite) -> None:
    task = submit(suite, "where", "-l", f"t={new_id('x')}", "--", "true")
    suite.done("wait", task)
    assert re.search(r"^runner +local$", suite.done("get", task), re.MULTILINE)
    wide = suite.done("list", "-o", "wide", "--filter", f'id = "{task}"').splitlines()[1]
    assert "local" in wide.split()


def test_watch_shows_the_message_of_the_error(suite: Suite) -> None:
    task = submit(suite, "wrong", "--retries", "0", "--", "sh", "-c", "exit 7")
    suite.cli("wait", task)
    last = suite.done("watch", task).splitlines()[-1]
    assert "EXIT_NONZERO: exit code 7" in last


def test_debug_prints_the_calls(suite: Suite) -> None:
    for words in (("-v", "submit", "--", "true"), ("submit", "--debug", "--", "true")):
        ended = suite.cli(*words)
        line = r"taskyard: taskyard\.v1\.TaskService/CreateTask OK \d+\.\d ms request_id=[0-9a-f]{32}"
        assert ended.code == 0 and re.search(line, ended.err), ended.err
    assert suite.cli("submit", "--", "true").err == ""


def test_messages_name_the_value_and_the_remedy(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "big.json").write_text(json.dumps("x" * 30_000_000))
    big = suite.cli("submit", "--function", "f", "--payload", f"@{tmp_path / 'big.json'}")
    assert big.code == 1 and re.search(r"task.spec.payload: 3000\d+ bytes are more than", big.err)
    wrong = suite.cli("list", TASKYARD_ADDRESS=suite.context["scheduler"], TASKYARD_KEY=suite.context["key"])
    assert wrong.code == 1 and "this is scheduler" in wrong.err and "use the address of taskdb" in wrong.err
    nonsense = suite.cli("list", TASKYARD_ADDRESS="nonsense", TASKYARD_KEY="k")
    assert nonsense.code == 3 and "'nonsense' (from TASKYARD_ADDRESS) is not host:port" in nonsense.err
    raw = subprocess.run(
        [BIN / "taskyard", "run", "--", "echo", b"caf\xe9"],
        cwd=suite.folder,
        env=client_environment(),
        capture_output=True,
        timeout=60,
    )
    assert raw.returncode == 2 and b"argument 4, 'caf\\xe9', is not UTF-8 text" in raw.stderr
    for ended in (big, wrong, nonsense):
        assert ended.err.startswith("taskyard: ") and ended.err.count("\n") == 1


def test_webhook_calls_and_secret(suite: Suite) -> None:
    assert suite.cli("webhooks").err == "No webhook calls wait for delivery.\n"
    secret = suite.done("webhooks", "secret").strip()
    assert secret.startswith("whsec_") and suite.done("webhooks", "secret").strip() == secret
    assert suite.done("webhooks", "secret", "--rotate").strip() != secret


def test_colours_are_forced_and_refused(suite: Suite) -> None:
    task = submit(suite, "red", "--", "true")
    suite.done("wait", task)
    forced = suite.cli("get", task, FORCE_COLOR="1")
    assert "\x1b[32mSUCCEEDED" in forced.out
    assert "\x1b" not in suite.cli("get", task, FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b" not in suite.done("get", task)


@pytest.mark.parametrize(
    "words", [["list"], ["list", "-o", "wide"], ["runners"], ["stats"], ["keys"], ["audit"]]
)
def test_eighty_columns_cut_no_title(suite: Suite, words: list[str]) -> None:
    submit(suite, "columns", "-l", "team=a-rather-long-name", "--", "echo", "x" * 100)
    with on_terminal(suite.folder, *words, columns=80, rows=50) as terminal:
        drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]", "", terminal.read_all())
    lines = drawn.replace("\r", "").splitlines()
    assert terminal.process.returncode == 0 and lines
    assert all(len(line) <= 80 for line in lines), lines
    titles = suite.done(*words).splitlines()[0].split("  ")
    shown = drawn.lower()
    assert all(title.strip().lower() in shown for title in titles if title.strip())


def test_long_output_goes_to_the_pager(suite: Suite) -> None:
    pager = suite.folder / "pager.sh"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o755)
    submit(suite, "paged", "--", "true")
    with on_terminal(suite.folder, "list", TASKYARD_PAGER=str(pager)) as terminal:
        drawn = terminal.read_all()
    assert terminal.process.returncode == 0 and "PAGED" in drawn and "TASK" in drawn
    assert "PAGED" not in suite.cli("list", TASKYARD_PAGER=str(pager)).out


def test_a_list_is_also_called_by_the_word_list(suite: Suite) -> None:
    named = suite.done("tenants", "list", "-o", "name")
    assert "default" in named.split() and named == suite.done("tenants", "-o", "name")
    assert suite.done("tenants", "ls", "-o", "name") == named
