"""The documents work word for word: every console block of them is executed and its output compared."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.suite import BIN, ROOT, Suite, client_environment

DOCUMENTS = ["README.md", "docs/quickstart.md", "clients/python/README.md"]
# What the fixture stands for, and what other tests and CI do.
ELSEWHERE = {"make up", "make test", "make verify", "make demo", "make help"}


def console_steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of the console blocks with the output shown below it."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        command, shown = "", list[str]()
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, shown
                command, shown = line[2:], []
            elif line.startswith("> ") or command.endswith("\\"):
                command += "\n" + line.removeprefix("> ")
            else:
                shown.append(line)
        yield command, shown


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def pattern_of(shown: list[str]) -> str:
    """Output as shown, in which … stands for anything."""
    return "\n".join(re.escape(line).replace("…", r".*?") for line in shown)


def flattened(text: str) -> str:
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines())


@pytest.fixture
def checkout(suite: Suite) -> Path:
    """A folder that looks like the checkout while the suite runs in it."""
    for name, target in {".venv": BIN.parent, "protos": ROOT / "protos"}.items():
        if not (suite.folder / name).exists():
            (suite.folder / name).symlink_to(target)
    return suite.folder


@pytest.mark.parametrize("document", DOCUMENTS)
def test_console_blocks_do_what_they_show(suite: Suite, checkout: Path, document: str) -> None:
    script, expected = ["set -u"], []
    for command, shown in console_steps((ROOT / document).read_text()):
        if command in ELSEWHERE:
            continue
        expected.append((command, shown))
        script += ["echo '--8<--'", command]
    # One shell for the whole document: a variable set in one block is used in the next.
    text = "\n".join(script).replace("127.0.0.1:7420", suite.context["address"])
    ended = subprocess.run(
        ["bash", "-c", text],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        cwd=checkout,
        env={**client_environment(), "HOME": str(checkout)},
    )
    outputs = ended.stdout.split("--8<--\n")[1:]
    assert len(outputs) == len(expected), ended.stdout
    for (command, shown), output in zip(expected, outputs, strict=True):
        wanted = pattern_of(flattened("\n".join(shown)).splitlines())
        assert re.fullmatch(wanted, flattened(output), re.DOTALL), f"$ {command}\n{output}\n{suite.logs()}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_python_blocks_run(suite: Suite, checkout: Path, document: str) -> None:
    for block in python_blocks((ROOT / document).read_text()):
        ended = subprocess.run(
            [BIN / "python", "-c", block],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=checkout,
            env=client_environment(),
        )
        assert ended.returncode == 0, f"{block}\n{ended.stderr}\n{suite.logs()}"
