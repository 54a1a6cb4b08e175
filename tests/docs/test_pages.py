"""The pages work word for word: every step on them is done in order, and its output compared."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.suite import BIN, ROOT, Suite, client_environment
from tests.docs.pages import blocks, matches, pages, steps

PAGE_SECONDS = 240
MARK = "--8<--"
SPLIT = "\n--><--\n"
DATABASE = "postgresql://taskyard:secret@db.example.com/taskyard"
# What is no program: pictures, output, SQL. What is typed belongs into `console`.
NOT_EXECUTED = {"", "text", "mermaid"}
# Programs that one page shows and its own tests execute.
EXECUTED_ELSEWHERE = {"docs/howto/run-a-runner.md"}


@pytest.fixture
def folder(suite: Suite, page: str) -> Path:
    """A folder that looks like the checkout, in which the suite is found."""
    folder = suite.folder if page == "README.md" else suite.folder / re.sub(r"\W+", "-", page)
    folder.mkdir(exist_ok=True)
    for name, target in {
        ".venv": BIN.parent,
        "protos": ROOT / "protos",
        "examples": ROOT / "examples",
    }.items():
        if not (folder / name).exists():
            (folder / name).symlink_to(target)
    return folder


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def new_database(suite: Suite, page: str) -> str:
    """The URL of an empty database on the suite's PostgreSQL."""
    found = re.search(r"psql '(.*)'", suite.said())
    assert found is not None
    url = found[1]
    # The role that owns the server may make databases, Taskyard's own may not.
    owner = url.replace("//taskyard@/taskyard?", "//postgres@/postgres?")
    name = "docs_" + re.sub(r"\W+", "_", page.lower())
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" OWNER taskyard')
    return url.replace("/taskyard?", f"/{name}?")


def here(suite: Suite, page: str, text: str) -> str:
    """The text with the hosts of the documents replaced by this machine."""
    if DATABASE in text:
        text = text.replace(DATABASE, f"'{new_database(suite, page)}'")
    text = text.replace("127.0.0.1:7420", suite.context["address"])
    for port in ("7420", "7421"):
        if f"0.0.0.0:{port}" in text:
            own = free_port()
            text = text.replace(f"0.0.0.0:{port}", f"127.0.0.1:{own}")
            text = text.replace(f"yard.example.com:{port}", f"localhost:{own}")
    return text


@pytest.mark.timeout(PAGE_SECONDS + 60)
@pytest.mark.parametrize("page", [page for page in pages() if list(steps(page))])
def test_every_step_does_what_the_page_shows(suite: Suite, folder: Path, page: str) -> None:
    # One shell for the whole page: what one step sets, the next one uses.
    text = here(suite, page, SPLIT.join(part for step in steps(page) for part in (step.command, step.shown)))
    parts = text.split(SPLIT)
    done = list(zip(parts[::2], parts[1::2], strict=True))
    script = "\n".join(f"echo '{MARK}'\n{command}" for command, _ in done)
    process = subprocess.Popen(
        ["bash", "-c", f"set -u\n{script}\n"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={**client_environment(), "HOME": str(folder)},
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=PAGE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"{page} did not end:\n{process.communicate()[0]}\n{suite.logs()}") from None
    outputs = output.split(f"{MARK}\n")[1:]
    assert len(outputs) == len(done), output
    for (command, shown), printed in zip(done, outputs, strict=True):
        assert matches(shown, printed), f"{page}\n$ {command}\n{printed}\n{suite.logs()}"


@pytest.mark.parametrize("page", pages())
def test_every_block_is_executed_or_is_no_program(page: str) -> None:
    for block in blocks(page):
        if block.language in NOT_EXECUTED:
            typed = [line for line in block.text.splitlines() if line.startswith("$ ")]
            assert not typed, f"{page}: what is typed belongs into a console block: {typed[0]}"
        else:
            assert block.language in ("console", "python") or page in EXECUTED_ELSEWHERE, (
                f"{page}: a block of {block.language} is not executed by any test"
            )


@pytest.mark.parametrize("page", pages())
def test_every_link_leads_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}, which does not exist"
