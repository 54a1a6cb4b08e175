"""Generates the Python stubs from the protos, or with --check lists committed stubs that differ."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path("clients/python/src")
OWNED = (Path("taskyard/v1"), Path("taskyard/compat"), Path("buf"))
"""Directories that hold generated files only; everything in them is written or deleted here."""


def render(root: Path) -> dict[Path, bytes]:
    """Return every generated file by its path below SOURCE."""
    with tempfile.TemporaryDirectory() as scratch:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        environment = os.environ | {"PATH": path}
        subprocess.run(["buf", "generate", "-o", scratch], cwd=root, env=environment, check=True)
        files = read_files(Path(scratch, SOURCE))
    # mypy-protobuf writes a _pb2_grpc.pyi for protos without a service too; those have no module.
    stubs = {path: content for path, content in files.items() if path.with_suffix(".py") in files}
    return stubs | {folder / "__init__.py": package_marker(folder) for folder in packages(stubs)}


def packages(stubs: dict[Path, bytes]) -> set[Path]:
    """Return the folders that become regular packages; `buf` stays a namespace that others may share."""
    folders = {parent for path in stubs for parent in path.parents}
    return {folder for folder in folders if len(folder.parts) > 1 and folder.parts[0] == "taskyard"}


def package_marker(folder: Path) -> bytes:
    return f'"""Generated stubs of protos/{folder.as_posix()}; `make generate` writes them."""\n'.encode()


def read_files(folder: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(folder): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def committed(root: Path) -> dict[Path, bytes]:
    files = read_files(root / SOURCE)
    return {path: content for path, content in files.items() if any(path.is_relative_to(o) for o in OWNED)}


def check(root: Path) -> int:
    """Print each stub that differs from the protos; return the exit status."""
    wanted, present = render(root), committed(root)
    for path in sorted(wanted.keys() | present.keys()):
        if path not in present:
            print(f"missing: {SOURCE / path}")
        elif path not in wanted:
            print(f"not generated from any proto: {SOURCE / path}")
        elif wanted[path] != present[path]:
            print(f"stale: {SOURCE / path}")
    return 0 if wanted == present else 1


def write(root: Path) -> int:
    """Write the stubs generated from the protos; leave unchanged files untouched."""
    wanted, present = render(root), committed(root)
    for path in present.keys() - wanted.keys():
        (root / SOURCE / path).unlink()
    for path, content in wanted.items():
        if present.get(path) != content:
            (root / SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
            (root / SOURCE / path).write_bytes(content)
    for folder in OWNED:
        remove_empty(root / SOURCE / folder)
    print(f"{len(wanted)} files in {SOURCE}, {sum(present.get(p) != c for p, c in wanted.items())} changed")
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
    arguments = parser.parse_args()
    try:
        return check(arguments.root) if arguments.check else write(arguments.root)
    except subprocess.CalledProcessError as error:
        print(f"buf generate failed with status {error.returncode}; see its message above", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
