"""Completion in the real shells: commands, and the ids that the server has now."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, Suite, client_environment
from tests.acceptance.terminal import program_on_terminal
from tests.acceptance.test_cli import new_id, submit

pytestmark = pytest.mark.timeout(600)

SET_UP = {
    "bash": 'PS1="ready> "; eval "$(taskyard completion bash)"; echo set-up\n',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(taskyard completion zsh)"; echo set-up\n',
}
START = {"bash": ("--norc", "--noprofile", "-i"), "zsh": ("-f", "-i")}


def ids(suite: Suite) -> dict[str, tuple[str, str]]:
    """By kind the beginning of a line, and the id that completes it."""
    task = submit(suite, "completed", "--", "true")
    tenant = new_id("tenant")
    suite.done("tenants", "create", tenant, "--tier", "free")
    task_type = new_id("type")
    (suite.folder / "type.yaml").write_text(f"kind: TaskType\nid: {task_type}\ndescription: for people\n")
    suite.done("apply", "-f", "type.yaml")
    return {
        "command": ("taskyard expl", "explain"),
        "task": (f"taskyard get {task[:-4]}", task),
        "prerequisite": (f"taskyard submit --after {task[:-4]}", task),
        "runner": ("taskyard runners show loc", "local"),
        "tenant": (f"taskyard list --tenant {tenant[:-4]}", tenant),
        "type": (f"taskyard types show {task_type[:-4]}", task_type),
    }


def require(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.mark.parametrize("shell", SET_UP)
def test_the_shell_completes_commands_and_ids(suite: Suite, shell: str, tmp_path: Path) -> None:
    require(shell)
    for begin, expected in ids(suite).values():
        with program_on_terminal(
            suite.folder, shell, *START[shell], columns=200, HOME=str(tmp_path), TERM="dumb"
        ) as terminal:
            terminal.press(SET_UP[shell])
            terminal.read_until("\r\nset-up")
            terminal.press(f"{begin}\t")
            # The end of the id is drawn by the shell: what was typed stops before it.
            terminal.read_until(expected[-4:] if expected != "explain" else "explain")
            assert expected in terminal.text.replace("\r", "").replace("\n", ""), terminal.text


def test_fish_completes_commands_and_ids_with_what_they_are(suite: Suite, tmp_path: Path) -> None:
    require("fish")
    for kind, (begin, expected) in ids(suite).items():
        program = f"taskyard completion fish | source; complete -C '{begin}'"
        ended = subprocess.run(
            ["fish", "--no-config", "-c", program],
            cwd=suite.folder,
            env={**client_environment(), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        offered = dict(line.partition("\t")[::2] for line in ended.stdout.splitlines())
        assert expected in offered, (kind, ended.stdout, ended.stderr)
        if kind == "type":
            assert offered[expected] == "for people"


def test_a_server_that_is_away_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    asked = {
        "_TASKYARD_COMPLETE": "bash_complete",
        "COMP_WORDS": "taskyard get x",
        "COMP_CWORD": "2",
        "TASKYARD_ADDRESS": "127.0.0.1:1",
        "TASKYARD_KEY": "k",
    }
    ended = subprocess.run(
        [BIN / "taskyard"],
        cwd=tmp_path,
        env={**client_environment(), **asked},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (ended.stdout.strip(), ended.stderr) == ("", "")
