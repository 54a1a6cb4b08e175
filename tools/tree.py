"""Checks of the checkout as a whole: one version and licence everywhere, no host or path of one machine."""

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from lock import LOCK, package_files


def version_faults(root: Path) -> Iterator[str]:
    """Yield packages whose version, or whose requirement of another package of the workspace, differs."""
    projects = {path: tomllib.loads(path.read_text())["project"] for path in package_files(root)}
    version = next(iter(projects.values()))["version"]
    for path, project in projects.items():
        if project["version"] != version:
            yield f"{path}: version is {project['version']}, clients/python has {version}"
        extras = project.get("optional-dependencies", {}).values()
        for requirement in [*project["dependencies"], *(item for extra in extras for item in extra)]:
            if requirement.startswith("taskyard") and not requirement.endswith(f"~={version}"):
                yield f"{path}: requires {requirement}, must end in ~={version}"


def licence_faults(root: Path) -> Iterator[str]:
    """Yield packages without their copy of the licence; a wheel takes it from the package's folder only."""
    licence = (root / "LICENSE").read_bytes()
    for path in package_files(root):
        copy = path.with_name("LICENSE")
        if not copy.is_file() or copy.is_symlink() or copy.read_bytes() != licence:
            yield f"{copy}: is not a copy of LICENSE"


def host_faults(root: Path) -> Iterator[str]:
    """Yield lines of the lock that name a place to download from."""
    for number, line in enumerate((root / LOCK).read_text().splitlines(), 1):
        if re.search(r"://|^\s*--(?!hash=)", line):
            yield f"{LOCK}:{number}: names a host or an option: {line.strip()}"


def path_faults(root: Path) -> Iterator[str]:
    """Yield text files that hold the absolute path of this checkout."""
    needle = str(root.resolve()).encode() + b"/"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = root / name
        if path.is_file() and needle in path.read_bytes():
            yield f"{name}: contains {needle.decode()}, a path of this machine"


# Packages of other languages: where each states its version, and what in its lock names a host.
OTHER_PACKAGES = {
    "clients/typescript/package.json": '"version": "{}"',
    "clients/java/pom.xml": "<version>{}</version>",
    "clients/rust/Cargo.toml": 'version = "{}"',
}
OTHER_LOCKS = {
    "clients/typescript/package-lock.json": r'"resolved"',
    "clients/rust/Cargo.lock": r'^source = "(?!registry\+https://github\.com/rust-lang/crates\.io-index")',
}


def other_language_faults(root: Path) -> Iterator[str]:
    """Yield packages of other languages with another version, no licence, or a host in their lock."""
    version = tomllib.loads((root / "clients/python/pyproject.toml").read_text())["project"]["version"]
    for name, form in OTHER_PACKAGES.items():
        if (root / name).is_file() and form.format(version) not in (root / name).read_text():
            yield f"{name}: version is not {version}, which clients/python has"
        copy = (root / name).with_name("LICENSE")
        if (root / name).is_file() and (
            not copy.is_file() or copy.read_bytes() != (root / "LICENSE").read_bytes()
        ):
            yield f"{copy}: is not a copy of LICENSE"
    for name, place in OTHER_LOCKS.items():
        if (root / name).is_file() and re.search(place, (root / name).read_text(), re.MULTILINE):
            yield f"{name}: names a host to download from"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    root = parser.parse_args().root
    checks = (version_faults, licence_faults, host_faults, path_faults, other_language_faults)
    faults = [fault for check in checks for fault in check(root)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
