"""Container: an image run by podman or runc, inside a host that passes its words on and removes it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import sys
from pathlib import Path

from taskyard.v1.task_pb2 import ContainerExecution
from taskyard_runner.executors.workload import (
    INSIDE,
    Engine,
    NotRunnable,
    Place,
    Workload,
    check_text,
    host_env,
)
from taskyard_runner.hosts.engines import remove_argv

_HOST = "taskyard_runner.hosts.container"
_IMAGE = re.compile(r"[A-Za-z0-9]+(?:[._/:@-]+[A-Za-z0-9_]+)*")
# Prefixes by which an engine would read files of the host instead of an image.
_TRANSPORTS = re.compile(
    r"(containers-storage|dir|docker|docker-archive|docker-daemon|oci|oci-archive|ostree|sif|tarball):"
)
_SHARED = ("private", "checkpoint", "work", "tmp")
# Variables that the engine's client needs of the runner's own environment.
_CLIENT_VARIABLES = ("HOME", "XDG_RUNTIME_DIR")
# Programs of a few bytes that only exit with 0, for the self-test: no host has an image for certain.
_EXIT_CODE = {
    "x86_64": (62, bytes.fromhex("31ffb83c0000000f05")),
    "aarch64": (183, bytes.fromhex("000080d2a80b80d2010000d4")),
}


def candidates(choice: str, path: str, data_dir: Path) -> list[Engine]:
    """Engines to try, in order of preference; of podman also the set-up that works on hybrid cgroups."""
    found = []
    podman, runc = (shutil.which(name, path=f"{path}:/usr/sbin:/sbin") for name in ("podman", "runc"))
    if podman and choice in ("auto", "podman"):
        found.append(Engine("podman", (podman,)))
        if runc:
            found.append(Engine("podman", (podman, "--runtime", runc, "--cgroup-manager=cgroupfs")))
    if runc and choice in ("auto", "runc"):
        found.append(Engine("runc", (runc, "--root", str(data_dir / "runc"))))
    return found


def describe(execution: ContainerExecution, place: Place) -> Workload:
    """The host process and its specification. Raises NotRunnable."""
    engine = place.containers.engine
    if engine is None:
        raise NotRunnable("this runner has no container engine that works")
    image = _check(execution, place)
    spec = {
        "image": image,
        "rootfs": "",
        "network": execution.network,
        "cwd": execution.working_directory,
    }
    spec |= {"command": list(execution.command), "args": list(execution.args)}
    if engine.name == "runc":
        spec["rootfs"] = str(_rootfs(image, place.containers.image_dir))
    return _workload(place, engine, spec)


def _rootfs(image: str, image_dir: Path) -> Path:
    """The directory of an image of runc: no name and no link leads out of the image directory."""
    root = image_dir.resolve()
    found = (root / image).resolve()
    if ".." in image.split("/") or not found.is_relative_to(root) or found == root:
        raise NotRunnable(f"container.image {image[:200]!r} is outside the runner's image directory")
    return found


def describe_probe(place: Place, engine: Engine) -> Workload:
    """A container that only exits, under every limit, on a root file system of its own."""
    machine = platform.machine()
    if machine not in _EXIT_CODE:
        raise NotRunnable(f"the self-test of containers has no program for {machine}")
    rootfs = place.root / "rootfs"
    (rootfs / "bin").mkdir(parents=True)
    program = rootfs / "bin" / "exit"
    program.write_bytes(static_program(*_EXIT_CODE[machine]))
    for path in (rootfs, rootfs / "bin", program):
        path.chmod(0o755)
    for name in ("proc", "dev", "sys", "etc", "tmp", "run"):
        (rootfs / name).mkdir()
    container = {
        "image": "",
        "rootfs": str(rootfs),
        "network": False,
        "cwd": "",
        "command": [],
        "args": ["/bin/exit"],
    }
    return _workload(place, engine, container)


def _workload(place: Place, engine: Engine, container: dict[str, object]) -> Workload:
    name = container_name(place.root)
    spec_file, env_file = place.private / "container.json", place.private / "container.env"
    env = {**place.env, "TASKYARD_SOCKET": f"{INSIDE}/task.sock", "TASKYARD_PIPE": f"{INSIDE}/private/pipe"}
    spec = {
        **container,
        "engine": engine.name,
        "client": list(engine.client),
        "name": name,
        "env": env,
        "env_file": str(env_file),
        "pull": place.containers.pull,
        "memory_bytes": place.memory_mb << 20,
        "cpu_millis": place.cpu_millis,
        "pids": place.pids,
        "file_bytes": place.disk_mb << 20,
        "mounts": _mounts(place),
        "user": place.user,
        "pipe": str(place.private / "pipe"),
        "bundle": str(place.root / "bundle"),
        "cgroup": f"/taskyard-containers/{name}",
        "error_file": str(place.private / "error"),
        "socket": place.env.get("TASKYARD_SOCKET", ""),
        "token": place.env.get("TASKYARD_TOKEN", ""),
    }
    files = [(spec_file, json.dumps(spec).encode()), (env_file, _env_file(env))]
    own = {variable: os.environ[variable] for variable in _CLIENT_VARIABLES if variable in os.environ}
    return Workload(
        [sys.executable, "-I", "-m", _HOST, str(spec_file)],
        str(place.work),
        {**host_env(place), **own, "PATH": f"{place.path}:/usr/sbin:/sbin"},
        files,
        trusted=True,
        limited=False,
        cleanup=remove_argv(engine.name, list(engine.client), name),
    )


def container_name(root: Path) -> str:
    """A container name that is unique among the runs and runners of the host."""
    return f"taskyard-{hashlib.sha256(str(root.parent).encode()).hexdigest()[:8]}-{root.name}"


def _mounts(place: Place) -> list[tuple[str, str, bool]]:
    found = [(str(place.root / name), f"{INSIDE}/{name}", True) for name in _SHARED]
    socket = place.env.get("TASKYARD_SOCKET", "")
    if socket:
        found.append((socket, f"{INSIDE}/task.sock", True))
    helper = Path(__file__).parents[1] / "task_helper.py"
    return [*found, (str(helper), f"{INSIDE}/taskyard-task", False)]


def _check(execution: ContainerExecution, place: Place) -> str:
    image = execution.image
    if not _IMAGE.fullmatch(image) or _TRANSPORTS.match(image):
        raise NotRunnable(f"container.image {image[:200]!r} is no image reference such as registry/name:tag")
    if execution.network and not place.containers.network:
        raise NotRunnable("container.network is not allowed by this runner; see its --container-network")
    for field, values in (("command", execution.command), ("args", execution.args)):
        for number, value in enumerate(values):
            check_text(f"container.{field}[{number}]", value)
    check_text("container.working_directory", execution.working_directory)
    if execution.working_directory and not execution.working_directory.startswith("/"):
        raise NotRunnable(f"container.working_directory {execution.working_directory!r} is no absolute path")
    return image


def _env_file(env: dict[str, str]) -> bytes:
    for name, value in env.items():
        if "\n" in value or "\r" in value:
            raise NotRunnable(f"env {name} has a line break, which a container's variables cannot have")
    return "".join(f"{name}={value}\n" for name, value in env.items()).encode()


def static_program(machine: int, code: bytes) -> bytes:
    """A static ELF executable of one segment that holds these instructions."""
    base, header = 0x400000, 64 + 56
    elf = b"\x7fELF\x02\x01\x01" + bytes(9)
    elf += (2).to_bytes(2, "little") + machine.to_bytes(2, "little") + (1).to_bytes(4, "little")
    elf += (base + header).to_bytes(8, "little") + (64).to_bytes(8, "little") + bytes(8 + 4)
    elf += b"".join(n.to_bytes(2, "little") for n in (64, 56, 1, 0, 0, 0))
    size = header + len(code)
    segment = (1).to_bytes(4, "little") + (5).to_bytes(4, "little")
    segment += b"".join(n.to_bytes(8, "little") for n in (0, base, base, size, size, 0x1000))
    return elf + segment + code
