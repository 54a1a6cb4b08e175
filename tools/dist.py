"""Builds the wheels and source distributions of all packages, twice, and compares and checks them.

A source distribution builds the same wheel as the checkout does, so that a packager gets what is published.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lock import package_files

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
# The earliest time that a zip file can hold, the same for every build.
EPOCH = "315532800"


class DistError(Exception):
    """A distribution that must not be published, in one line with the remedy."""


def build(sources: list[Path], folder: Path, *kinds: str) -> None:
    """Build these packages into a folder."""
    for source in sources:
        command = [str(BIN / "uv"), "build", "--quiet", "--no-build-isolation", "--python", sys.executable]
        command += [*kinds, "--out-dir", str(folder), str(source)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        if subprocess.run(command, env=environment, check=False).returncode != 0:
            raise DistError(f"{source} cannot be built; see the message above")
    (folder / ".gitignore").unlink(missing_ok=True)


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every distribution in a folder, by its name."""
    found = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def compare(first: dict[str, str], second: dict[str, str], builds: str) -> None:
    """Raises DistError if two builds differ."""
    different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    if different:
        raise DistError(f"{', '.join(different)}: {builds} differ; remove what depends on time or place")


def unpacked(folder: Path, target: Path) -> list[Path]:
    """The source distributions of a folder, unpacked."""
    for archive in sorted(folder.glob("*.tar.gz")):
        shutil.unpack_archive(archive, target, filter="data")
    return sorted(target.iterdir())


def check(folder: Path) -> None:
    """Let twine check what an index would show."""
    paths = sorted(str(path) for path in (*folder.glob("*.whl"), *folder.glob("*.tar.gz")))
    command = [sys.executable, "-m", "twine", "check", "--strict", *paths]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode != 0:
        raise DistError(f"twine check: {ended.stdout.strip()}")


def make(target: Path) -> dict[str, str]:
    """Fill the folder with checked distributions and SHA256SUMS; returns their digests."""
    sources = [path.parent for path in package_files(ROOT)]
    shutil.rmtree(target, ignore_errors=True)
    build(sources, target, "--wheel", "--sdist")
    made = digests(target)
    if len(made) != 2 * len(sources):
        raise DistError(f"{len(sources)} packages have made {len(made)} files, not two each")
    check(target)
    with tempfile.TemporaryDirectory() as name:
        again, apart = Path(name) / "again", Path(name) / "apart"
        build(unpacked(target, Path(name) / "sources"), again, "--wheel")
        build(sources, apart, "--sdist")
        compare(made, digests(again) | digests(apart), "two builds")
    sums = "".join(f"{digest}  {name}\n" for name, digest in made.items())
    (target / "SHA256SUMS").write_text(sums)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, default=ROOT / "dist", help="the folder, which is emptied")
    target = parser.parse_args().target
    try:
        made = make(target)
    except DistError as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    print(f"dist: {len(made)} distributions in {target}, built twice with equal bytes and checked by twine")
    return 0


if __name__ == "__main__":
    sys.exit(main())
