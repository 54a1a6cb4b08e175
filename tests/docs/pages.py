"""The pages that people read, and the steps on them: commands with the output shown below, and programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
# Records of decisions and generated pages hold no steps.
_WITHOUT_STEPS = ("docs/decisions", "docs/reference")
# Commands that the fixture replaces, and those of other tests and CI.
ELSEWHERE = {"make up", "make test", "make verify", "make demo", "make help"}
_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, and its text."""

    language: str
    text: str


@dataclass(frozen=True)
class Step:
    """A command as it is typed, and what it prints, in which … matches anything."""

    command: str
    shown: str = ""


def pages() -> list[str]:
    """Every page, by its path in the checkout."""
    found = [ROOT / "README.md", ROOT / "clients/python/README.md", ROOT / "examples/README.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    names = [str(page.relative_to(ROOT)) for page in found if page.exists()]
    return [name for name in names if not name.startswith(_WITHOUT_STEPS)]


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, also those inside lists."""
    text = (ROOT / page).read_text()
    return [Block(language, dedent(body)) for _, language, body in _FENCE.findall(text)]


def is_picture(text: str) -> bool:
    """Whether a block is drawn and nothing to type: every program here is written without these signs."""
    return re.search("[│├└─━▶▼▲►]|▁▂", text) is not None


def steps(page: str) -> Iterator[Step]:
    """The steps of a reader who follows the page from top to bottom."""
    for block in blocks(page):
        if block.language == "console":
            yield from console_steps(block.text)
        elif block.language == "python":
            # What it prints is its own affair, how it ends is not.
            program = f"python - <<'END-OF-PROGRAM'\n{block.text}END-OF-PROGRAM"
            yield Step(f'{program}\necho "exit code $?"', "…exit code 0")


def console_steps(text: str) -> Iterator[Step]:
    """The steps of a console block."""
    command, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command and command not in ELSEWHERE:
                yield Step(command, "\n".join(shown))
            command, shown = line[2:], []
        elif line.startswith("> ") or line == ">" or command.endswith("\\"):
            command += "\n" + line.removeprefix(">").removeprefix(" ")
        else:
            shown.append(line)
    if command and command not in ELSEWHERE:
        yield Step(command, "\n".join(shown))


def matches(shown: str, output: str) -> bool:
    """Whether an output is what a page shows; how far columns are apart does not matter."""
    wanted = "\n".join(re.escape(line).replace("…", ".*?") for line in _flattened(shown).splitlines())
    return re.fullmatch(wanted, _flattened(output), re.DOTALL) is not None


def _flattened(text: str) -> str:
    return "\n".join(re.sub(r"\s+", " ", line).strip() for line in text.strip().splitlines())
