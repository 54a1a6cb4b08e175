"""Type checkers know the arguments of the client: a mistyped one is an error before the program runs."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from taskyard import Client, SyncClient, Task

client = Client({arguments})
blocking = SyncClient({arguments})


async def use(client: Client, blocking: SyncClient) -> None:
    task: Task = await client.get("a")
    same: Task = blocking.get("a")
    print(task.succeeded, same.result, await client.call("greet", {{"name": "Ada"}}, deadline=5, retry=2))
"""


def check(folder: Path, arguments: str) -> str:
    """What mypy prints about a program that makes clients with these arguments."""
    program = folder / "program.py"
    program.write_text(PROGRAM.format(arguments=arguments))
    # Away from the checkout, as in a project of its own that has installed the package.
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), str(program)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False).stdout


@pytest.mark.timeout(400)
def test_a_mistyped_argument_of_the_client_is_refused(tmp_path: Path) -> None:
    assert check(tmp_path, 'address="a:1", key="k", patience=3, outage_timeout=60').startswith("Success")
    refused = check(tmp_path, 'adress="a:1"')
    assert refused.count('Unexpected keyword argument "adress"') == 2, refused
    assert check(tmp_path, "timeout='soon'").count("incompatible type") == 2
