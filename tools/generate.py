"""Generates the stubs of every language from the protos, or with --check lists committed stubs that differ.

A language whose plugins are absent is named and skipped; Python's come with .venv.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from languages import LANGUAGES, OUT, Language


@dataclass(frozen=True)
class Outcome:
    """The generated files of one language by path below its source folder, beside the committed ones."""

    language: Language
    wanted: dict[Path, bytes]
    present: dict[Path, bytes]


def tool_environment() -> dict[str, str]:
    """Return an environment in which the programs of this Python come first."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return os.environ | {"PATH": path}


def missing_tool(language: Language, root: Path) -> str:
    """Return the first probe of the language that fails, empty if its plugins can run."""
    for probe in language.probes:
        try:
            subprocess.run(probe, cwd=root, env=tool_environment(), capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return " ".join(probe)
    return ""


def render(language: Language, root: Path) -> dict[Path, bytes]:
    """Return every generated file of a language by its path below its source folder."""
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, language.source).mkdir(parents=True)
        command = [part.replace(OUT, scratch) for part in language.command]
        subprocess.run(command, cwd=root, env=tool_environment(), check=True)
        files = language.finish(read_files(Path(scratch, language.source)))
    return files | {copy: (root / source).read_bytes() for copy, source in language.copies.items()}


def read_files(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def committed(language: Language, root: Path) -> dict[Path, bytes]:
    files: dict[Path, bytes] = {}
    for owned in language.owned:
        place = root / language.source / owned
        found = {Path(): place.read_bytes()} if place.is_file() else read_files(place)
        files |= {owned / path: content for path, content in found.items()}
    return files


def check(outcome: Outcome) -> int:
    """Print each stub that differs from the protos; return the exit status."""
    source, wanted, present = outcome.language.source, outcome.wanted, outcome.present
    for path in sorted(wanted.keys() | present.keys()):
        if path not in present:
            print(f"missing: {source / path}")
        elif path not in wanted:
            print(f"not generated from any proto: {source / path}")
        elif wanted[path] != present[path]:
            print(f"stale: {source / path}")
    return 0 if wanted == present else 1


def write(outcome: Outcome, root: Path) -> int:
    """Write the stubs generated from the protos; leave unchanged files untouched."""
    source, wanted, present = root / outcome.language.source, outcome.wanted, outcome.present
    for path in present.keys() - wanted.keys():
        (source / path).unlink()
    for path, content in wanted.items():
        if present.get(path) != content:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_bytes(content)
    for folder in outcome.language.owned:
        remove_empty(source / folder)
    changed = sum(present.get(path) != content for path, content in wanted.items())
    print(f"{len(wanted)} files in {outcome.language.source}, {changed} changed")
    return 0


def remove_empty(folder: Path) -> None:
    """Delete folders below and including this one that hold nothing but bytecode."""
    for child in sorted(folder.rglob("*"), reverse=True):
        if child.is_dir() and child.name != "__pycache__":
            remove_empty(child)
    if folder.is_dir() and not read_files(folder):
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a stub is stale")
    parser.add_argument("names", nargs="*", metavar="language", help=", ".join(one.name for one in LANGUAGES))
    arguments = parser.parse_args()
    root, status = arguments.root, 0
    for language in LANGUAGES:
        if arguments.names and language.name not in arguments.names:
            continue
        missing = missing_tool(language, root)
        if missing:
            print(f"{language.name}: skipped, `{missing}` fails; {language.remedy}")
            continue
        try:
            outcome = Outcome(language, render(language, root), committed(language, root))
        except subprocess.CalledProcessError as error:
            print(f"{language.name}: {error.cmd[0]} failed with status {error.returncode}", file=sys.stderr)
            status = 1
            continue
        status |= check(outcome) if arguments.check else write(outcome, root)
    return status


if __name__ == "__main__":
    sys.exit(main())
