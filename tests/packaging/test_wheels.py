"""The wheels hold all their sources, and the runner's installs by itself, without anything of SQL."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = [
    ROOT / "clients/python",
    *(path.parent for path in sorted(ROOT.glob("services/*/pyproject.toml"))),
]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
LIGHT = {
    "googleapis-common-protos",
    "grpcio",
    "grpcio-status",
    "protobuf",
    "taskyard",
    "taskyard-kit",
    "taskyard-runner",
    "typing-extensions",
}
"""Everything a host needs to run tasks. A name that is added here is added to every host."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of every package of the workspace."""
    folder = tmp_path_factory.mktemp("wheels")
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*PIP, *build, *map(str, PACKAGES)], check=True)
    return folder


@pytest.fixture(scope="module")
def runner_host(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment into which only the runner's wheel was installed."""
    folder = tmp_path_factory.mktemp("host")
    venv.create(folder)
    pins = folder / "pins.txt"
    locked = (ROOT / "requirements.lock").read_text().splitlines()
    pins.write_text("\n".join(line.rstrip(" \\") for line in locked if "==" in line))
    install = ["install", "--find-links", str(wheels), "--constraint", str(pins), "taskyard-runner"]
    subprocess.run([*PIP, "--python", str(folder / "bin/python"), *install], check=True)
    return folder


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_wheel_holds_every_source_file(wheels: Path, package: Path) -> None:
    source = package / "src"
    sources = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    distribution = "taskyard" if package.name == "python" else f"taskyard_{package.name}"
    (wheel,) = wheels.glob(f"{distribution}-[0-9]*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in packed if ".dist-info/" not in name} == sources
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in packed)


def test_runner_needs_little_and_no_sql(runner_host: Path) -> None:
    program = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    listed = subprocess.run(
        [runner_host / "bin/python", "-c", program], capture_output=True, text=True, check=True
    )
    assert {name.lower().replace("_", "-") for name in listed.stdout.split()} == LIGHT


def test_stubs_import_with_the_runner_alone(runner_host: Path) -> None:
    program = "import buf.validate.validate_pb2, taskyard.v1.task_service_pb2_grpc"
    subprocess.run([runner_host / "bin/python", "-c", program], check=True, env={}, cwd=runner_host)


@pytest.mark.parametrize("command", ["taskyard-runner", "taskyard-task"])
def test_runner_commands_start(runner_host: Path, command: str) -> None:
    started = subprocess.run(
        [runner_host / "bin" / command, "--help"],
        capture_output=True,
        text=True,
        cwd=runner_host,
        env={"PATH": os.defpath},
    )
    assert started.returncode == 0, started.stderr
    assert "usage" in started.stdout.lower()
