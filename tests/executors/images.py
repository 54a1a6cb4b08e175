"""Tiny images of a static busybox, and the container engines that work on this host."""

from __future__ import annotations

import atexit
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

from taskyard_runner.executors import Engine, Place
from taskyard_runner.executors.container import candidates, describe_probe

_APPLETS = (
    "sh",
    "sleep",
    "printf",
    "cat",
    "cp",
    "dd",
    "id",
    "ls",
    "true",
    "echo",
    "head",
    "wget",
    "nproc",
    "touch",
)
NAME = f"taskyard-test-{os.getpid()}"


@cache
def engine_problem(name: str) -> str:
    """Why the engine cannot be used here; empty if it can."""
    return "" if find_engine(name) else f"no container engine works here: {name}"


@cache
def find_engine(name: str) -> Engine | None:
    """The engine as a runner would prove it."""
    if _static_busybox() is None:
        return None
    found = candidates(name, os.environ.get("PATH", os.defpath), _folder())
    return next((engine for engine in found if _works(engine)), None)


def _works(engine: Engine) -> bool:
    with tempfile.TemporaryDirectory(prefix="taskyard-probe-") as folder:
        root = Path(folder) / "probe"
        for name in ("private", "work", "tmp", "checkpoint"):
            (root / name).mkdir(parents=True)
        place = Place(root, Path(folder), os.environ.get("PATH", os.defpath), {}, memory_mb=64, pids=64)
        workload = describe_probe(place, engine)
        for path, content in workload.files:
            path.write_bytes(content)
        ran = subprocess.run(workload.argv, env=workload.env, cwd=workload.cwd, capture_output=True)
        return ran.returncode == 0


@cache
def podman_image() -> str:
    """The reference of an image in podman's storage, removed at the end of the process."""
    engine = find_engine("podman")
    assert engine is not None
    reference = f"localhost/{NAME}:1"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(image_directory() / NAME, arcname=".")
    subprocess.run([*engine.client, "import", "-", reference], input=archive.getvalue(), check=True)
    atexit.register(subprocess.run, [*engine.client, "rmi", "--force", reference], capture_output=True)
    return reference


@cache
def image_directory() -> Path:
    """A directory with one root file system, `NAME`, as runc uses them."""
    root = _folder() / NAME
    busybox = _static_busybox()
    assert busybox is not None
    for name in ("bin", "etc", "proc", "sys", "dev", "tmp", "run"):
        (root / name).mkdir(parents=True)
    shutil.copy(busybox, root / "bin" / "busybox")
    for applet in _APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    return _folder()


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="taskyard-images-")
    os.chmod(folder, 0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _static_busybox() -> str | None:
    """One that runs without any library, or None."""
    found = shutil.which("busybox")
    return found if found is not None and not _names_interpreter(Path(found).read_bytes()) else None


def _names_interpreter(elf: bytes) -> bool:
    """Whether an ELF file of 64 bits has a segment of type PT_INTERP, which a static one has not."""
    offset = int.from_bytes(elf[32:40], "little")
    size, count = (int.from_bytes(elf[at : at + 2], "little") for at in (54, 56))
    headers = (elf[offset + n * size :] for n in range(count))
    return any(int.from_bytes(header[:4], "little") == 3 for header in headers)
