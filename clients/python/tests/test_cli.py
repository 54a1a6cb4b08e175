"""The command line as a process of its own: output, exit codes, and one line with a remedy for each error."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from clients.python.tests.task_server import KEY, TaskServer
from clients.python.tests.test_follow import changes, lines
from taskyard import Client, command, errors
from taskyard.cli.group import ENTRIES, taskyard
from taskyard.v1 import task_pb2

PROGRAM = Path(sys.executable).parent / "taskyard"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


Cli = Callable[..., Awaitable[Ended]]


def environment(**more: str) -> dict[str, str]:
    return {"PATH": os.defpath, "HOME": "/nonexistent", "TASKYARD_PATIENCE": "0", **more}


async def start(*arguments: str, cwd: Path, **more: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        PROGRAM, *arguments, cwd=cwd, env=environment(**more), stdout=pipe, stderr=pipe
    )


async def end(process: asyncio.subprocess.Process) -> Ended:
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
def cli(address: str, tmp_path: Path) -> Cli:
    async def run(*arguments: str) -> Ended:
        return await end(await start(*arguments, cwd=tmp_path, TASKYARD_ADDRESS=address, TASKYARD_KEY=KEY))

    return run


def fail_task(server: TaskServer, phase: int, exit_code: int | None) -> None:
    """Gives every task this phase and exit code when a call waits for it."""
    server.outcome = (phase, exit_code)
    server.ended.set()


async def test_run_prints_the_output_and_passes_on_success(cli: Cli, server: TaskServer) -> None:
    server.scripts = [[lines("k1", 1, 2), lines("k2", complete=True)]]
    server.ended.set()
    ended = await cli("run", "--", "echo", "-n", "hello")
    assert ended == Ended(0, "line 1\nline 2\n", "")
    (created,) = server.requests("CreateTask")
    assert list(created.task.spec.execution.command.args) == ["-n", "hello"]
    assert created.task.spec.retry.max_retries == 0


@pytest.mark.parametrize(
    ("phase", "exit_code", "expected"),
    [
        (task_pb2.TASK_PHASE_FAILED, 3, 3),
        (task_pb2.TASK_PHASE_FAILED, -9, 137),
        (task_pb2.TASK_PHASE_FAILED, None, 125),
        (task_pb2.TASK_PHASE_TIMED_OUT, None, 124),
        (task_pb2.TASK_PHASE_CANCELLED, None, 130),
    ],
)
async def test_run_passes_on_the_exit_code(
    cli: Cli, server: TaskServer, phase: int, exit_code: int | None, expected: int
) -> None:
    server.scripts = [[lines("k1", complete=True)]]
    fail_task(server, phase, exit_code)
    ended = await cli("run", "--", "false")
    assert ended.code == expected
    assert ended.err.startswith("taskyard: task t0  ")
    assert ended.err.count("\n") == 1


async def test_ctrl_c_cancels_and_a_second_one_detaches(
    address: str, server: TaskServer, tmp_path: Path
) -> None:
    server.scripts = [[lines("k1", 1), asyncio.Event()]]
    process = await start(
        "run", "--", "sleep", "1000", cwd=tmp_path, TASKYARD_ADDRESS=address, TASKYARD_KEY=KEY
    )
    assert process.stdout is not None and process.stderr is not None
    assert await process.stdout.readline() == b"line 1\n"
    process.send_signal(signal.SIGINT)
    await server.called("CancelTask")
    assert b"Cancelling" in await process.stderr.readline()
    process.send_signal(signal.SIGINT)
    ended = await end(process)
    assert ended.code == 130
    assert "taskyard get t0" in ended.err


async def test_submit_prints_the_id_alone(cli: Cli, server: TaskServer, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("print(1)")
    ended = await cli("submit", "--id", "a", "-l", "team=x", "--script", "job.py", "--", "--flag")
    assert ended == Ended(0, "a\n", "")
    (created,) = server.requests("CreateTask")
    execution = created.task.spec.execution.script
    assert (execution.interpreter, execution.body) == (task_pb2.INTERPRETER_PYTHON, b"print(1)")
    assert list(execution.args) == ["--flag"]
    assert created.task.metadata.labels["team"] == "x"
    assert not created.task.spec.HasField("retry")


async def test_list_aligns_and_has_no_colours_in_a_pipe(cli: Cli, client: Client) -> None:
    await client.create(command("echo", "a b", id="short"))
    await client.create(command("true", id="much-longer-id"))
    ended = await cli("list")
    head, *rows = ended.out.splitlines()
    assert ended.code == 0 and "\x1b" not in ended.out
    assert head.split() == ["TASK", "PHASE", "CREATED", "TOOK", "WHAT"]
    assert {row.index("PENDING") for row in rows} == {head.index("PHASE")}
    assert rows[0].endswith("echo 'a b'")
    assert "RUNNER" in (await cli("list", "-o", "wide")).out


async def test_list_for_programs(cli: Cli, client: Client) -> None:
    assert json.loads((await cli("list", "-o", "json")).out) == []
    for name in ("a", "b"):
        await client.create(command("true", id=name))
    assert [task["name"] for task in json.loads((await cli("list", "-o", "json")).out)] == [
        "tenants/default/tasks/a",
        "tenants/default/tasks/b",
    ]
    assert (await cli("list", "-o", "name")).out == "a\nb\n"


async def test_list_longer_than_the_limit_prints_a_note(cli: Cli, client: Client) -> None:
    for name in ("a", "b"):
        await client.create(command("true", id=name))
    assert "--all" in (await cli("list", "-n", "1")).err
    assert (await cli("list", "--all")).err == ""


async def test_broken_pipe_is_silent(address: str, client: Client, tmp_path: Path) -> None:
    async for _ in client.create_many(command("true") for _ in range(5000)):
        pass
    process = await asyncio.create_subprocess_shell(
        f"{PROGRAM} list --all | head -n 1",
        cwd=tmp_path,
        env=environment(TASKYARD_ADDRESS=address, TASKYARD_KEY=KEY),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    ended = await end(process)
    assert ended.out.startswith("TASK") and ended.out.count("\n") == 1
    assert ended.err == ""


async def test_watch_prints_each_change(cli: Cli, server: TaskServer, client: Client) -> None:
    await client.create(command("true", id="a"))
    server.scripts = [[changes("k1", 1, 2)]]
    ended = await cli("watch", "a")
    assert ended.code == 0
    assert [line.split()[1:] for line in ended.out.splitlines()] == [["a", "RUNNING"]] * 2


async def test_get_omits_empty_fields(cli: Cli, client: Client) -> None:
    await client.create(command("echo", "x\x1b[2Jy", id="a", payload={"n": 1}))
    ended = await cli("get", "a")
    shown = dict(line.split(None, 1) for line in ended.out.splitlines() if line)
    assert (shown["task"], shown["phase"], shown["payload"]) == ("a", "PENDING", '{"n": 1}')
    assert "exit code" not in ended.out and "\x1b" not in ended.out


async def test_several_tasks_with_one_missing(cli: Cli, client: Client) -> None:
    await client.create(command("true", id="a"))
    ended = await cli("cancel", "nope", "a")
    assert ended.code == 5
    assert ended.out.startswith("a  ")
    assert 'no task "nope"' in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["get", "nope"], 5, 'no task "nope"; to list them: `taskyard list`'),
        (["--key", "ty_wrong_key", "list"], 4, "TASKYARD_KEY"),
        (["--address", "127.0.0.1:1", "list"], 3, "start one with `make up`"),
        (["lst"], 2, "Did you mean 'list'"),
        (["list", "--fitler", "x"], 2, "--filter"),
        (["run"], 2, "nothing to run"),
        (["run", "--timeout", "soon", "--", "a"], 2, "1m30s"),
        (["submit", "--function", "f", "--payload", "{'a'", "--"], 2, "line 1, column 2"),
        (["submit", "--label", "x", "--", "a"], 2, "name=value"),
        (["submit", "--function", "f", "--image", "i"], 2, "exclude each other"),
    ],
)
async def test_errors_are_one_line_with_a_remedy(
    cli: Cli, arguments: list[str], code: int, message: str
) -> None:
    ended = await cli(*arguments)
    assert ended.code == code
    assert message in ended.err
    assert ended.err.startswith("taskyard: ") and ended.err.count("\n") == 1
    assert ended.out == ""


async def test_missing_context_prints_the_remedy(tmp_path: Path) -> None:
    ended = await end(await start("list", cwd=tmp_path))
    assert (ended.code, ended.out) == (3, "")
    assert "make up" in ended.err and ended.err.count("\n") == 1


async def test_server_error_is_printed_with_its_exit_code(cli: Cli, server: TaskServer) -> None:
    server.item_fault = lambda request: errors.FieldInvalid.of("task.spec.slot", '"a b" has a space')
    ended = await cli("submit", "--slot", "a b", "--", "true")
    assert ended == Ended(1, "", 'taskyard: task.spec.slot: "a b" has a space\n')


async def test_every_command_has_an_example_in_its_help(tmp_path: Path) -> None:
    assert "Exit codes" in (await end(await start("--help", cwd=tmp_path))).out
    for path, one in every_command():
        assert "Example" in (one.help or "") and f"taskyard {path}" in (one.help or ""), path


def every_command() -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand with its words."""
    for name in ENTRIES:
        one = taskyard.get_command(click.Context(taskyard), name)
        assert one is not None
        yield name, one
        if isinstance(one, click.Group):
            shown = {inner: command for inner, command in one.commands.items() if not command.hidden}
            yield from ((f"{name} {inner}", command) for inner, command in shown.items())


def test_overview_shows_the_help_of_each_command() -> None:
    for name, entry in ENTRIES.items():
        one = taskyard.get_command(click.Context(taskyard), name)
        assert one is not None and one.name == name
        first = (one.help or "").partition("\n")[0]
        assert first.startswith(entry.help.rstrip(".")), name


def test_the_overview_loads_neither_grpc_nor_protobuf() -> None:
    program = (
        "import sys; from taskyard.cli.main import run; run(['--help']); "
        "print([name for name in ('grpc', 'google.protobuf', 'yaml') if name in sys.modules])"
    )
    message = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert message.stdout.splitlines()[-1] == "[]"


async def test_shells_can_complete(tmp_path: Path) -> None:
    assert "_TASKYARD_COMPLETE" in (await end(await start("completion", "zsh", cwd=tmp_path))).out
    requested = {"_TASKYARD_COMPLETE": "bash_complete", "COMP_WORDS": "taskyard wa", "COMP_CWORD": "1"}
    ended = await end(await start(cwd=tmp_path, **requested))
    assert ended.out.split() == ["plain,watch", "plain,wait"]


def test_every_help_fits_into_80_columns() -> None:
    for words, found in [("", taskyard), *every_command()]:
        context = click.Context(found, info_name=f"taskyard {words}", terminal_width=80, max_content_width=80)
        wide = [line for line in found.get_help(context).splitlines() if len(line) > 80]
        assert not wide, f"{words} --help: {wide}"


def test_every_list_is_also_called_list() -> None:
    for words, found in every_command():
        if isinstance(found, click.Group) and found.invoke_without_command:
            named = found.commands["list"]
            assert named.callback is found.callback, words
            assert {param.name for param in named.params} == {param.name for param in found.params}
