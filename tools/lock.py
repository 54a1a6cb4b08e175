"""Writes requirements.lock, or with --check reports whether it still matches the pyproject files."""

import argparse
import hashlib
import subprocess
import sys
import tomllib
from pathlib import Path

LOCK = "requirements.lock"
HEADER = "# Every dependency of the workspace, with hashes. Change a pyproject.toml, then run `make lock`."
DIGEST = "# requirements sha256: "


def package_files(root: Path) -> list[Path]:
    """Return the pyproject.toml of every package of the workspace."""
    return [root / "clients/python/pyproject.toml", *sorted(root.glob("services/*/pyproject.toml"))]


def requirements(root: Path) -> list[str]:
    """Return the external requirements of the packages, their extras and the developer tools."""
    wanted = set(tomllib.loads((root / "pyproject.toml").read_text())["dependency-groups"]["dev"])
    for path in package_files(root):
        project = tomllib.loads(path.read_text())["project"]
        wanted.update(project["dependencies"])
        for extra in project.get("optional-dependencies", {}).values():
            wanted.update(extra)
    return sorted(item for item in wanted if not item.startswith("taskyard"))


def digest(wanted: list[str]) -> str:
    return hashlib.sha256("\n".join(wanted).encode()).hexdigest()


def check(root: Path) -> int:
    """Compare the digest in the lock with the requirements of today; needs no network."""
    recorded = [line for line in (root / LOCK).read_text().splitlines() if line.startswith(DIGEST)]
    if recorded == [DIGEST + digest(requirements(root))]:
        return 0
    print(f"{LOCK} was made from other requirements than the pyproject.toml files hold now")
    return 1


def write(root: Path, upgrade: bool) -> int:
    """Resolve for every supported platform; versions stay as locked unless `upgrade` is set."""
    wanted = requirements(root)
    uv = str(Path(sys.executable).with_name("uv"))
    command = [uv, "pip", "compile", "-", "-o", LOCK, "--universal", "--python-version", "3.11", "--quiet"]
    command += ["--generate-hashes", "--no-emit-index-url", "--no-emit-find-links"]
    command += ["--no-header", "--no-annotate", "--system-certs", *(["--upgrade"] if upgrade else [])]
    result = subprocess.run(command, cwd=root, input="\n".join(wanted), text=True, stdout=subprocess.DEVNULL)
    if result.returncode == 0:
        body = (root / LOCK).read_text()
        (root / LOCK).write_text(f"{HEADER}\n{DIGEST}{digest(wanted)}\n{body}")
    return result.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the lock is stale")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    arguments = parser.parse_args()
    return check(arguments.root) if arguments.check else write(arguments.root, arguments.upgrade)


if __name__ == "__main__":
    sys.exit(main())
