"""Container engines by their command lines: podman with its images, runc with root file systems."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from taskyard_runner.hosts.bundle import DEFAULT_PATH, bundle

_MAX_FILES = 1 << 20
# podman sets its own limit to the host's highest process id, and no container may have more.
_PID_MAX = "/proc/sys/kernel/pid_max"
_MAX_MESSAGE = 2000


class ImageProblem(Exception):
    """Why there is no image to run; permanent if the next attempt meets the same."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        super().__init__(message)
        self.permanent = permanent


@dataclass(frozen=True)
class End:
    """The engine's record of a container that has ended."""

    started: bool
    out_of_memory: bool


class Engine(Protocol):
    """One container of an engine."""

    name: str

    def prepare(self) -> None:
        """Have the image. Raises ImageProblem."""
        ...

    def run_argv(self) -> list[str]:
        """The client that runs the container in the foreground."""
        ...

    def end(self) -> End:
        """How it ended; asked once the client has."""
        ...

    def remove(self) -> None:
        """Nothing is left of the container."""
        ...


def remove_argv(engine: str, client: list[str], name: str) -> list[str]:
    """The command that kills and removes a container, whatever its state; harmless if there is none."""
    if engine == "podman":
        return [*client, "rm", "--force", "--time=0", "--ignore", name]
    return [*client, "delete", "--force", name]


def rlimits(file_bytes: int) -> dict[str, tuple[int, int]]:
    """Limits within those of this process: an engine's own defaults may be above them, and then fail."""
    found = {"nofile": _within(resource.RLIMIT_NOFILE, _MAX_FILES), "core": (0, 0)}
    with open(_PID_MAX) as file:
        found["nproc"] = _within(resource.RLIMIT_NPROC, int(file.read()))
    if file_bytes:
        found["fsize"] = (file_bytes, file_bytes)
    return found


def _within(kind: int, most: int) -> tuple[int, int]:
    soft, hard = (most if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(kind))
    return min(soft, most), min(hard, most)


class Podman:
    """`podman run`; conmon is podman's own, so the container is known and removed by its name."""

    name = "podman"

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._client: list[str] = spec["client"]

    def prepare(self) -> None:
        image = self._spec["image"]
        if self._spec["rootfs"] or self._ask("image", "exists", image).returncode == 0:
            return
        if not self._spec["pull"]:
            problem = f"container.image {image!r} is not on this host, and this runner pulls none"
            raise ImageProblem(f"{problem}; load it there or use --container-pull", permanent=True)
        pulled = self._ask("pull", "--quiet", image)
        if pulled.returncode != 0:
            problem = pulled.stderr.strip()[-_MAX_MESSAGE:]
            raise ImageProblem(f"container.image {image!r} cannot be pulled: {problem}", permanent=False)

    def run_argv(self) -> list[str]:
        spec = self._spec
        network = "host" if spec["network"] else "none"
        argv = [*self._client, "run", f"--name={spec['name']}", f"--network={network}", "--pull=never"]
        argv += ["--log-driver=none", "--http-proxy=false", f"--env-file={spec['env_file']}"]
        argv += ["--cap-drop=all", "--security-opt=no-new-privileges"]
        for name, (soft, hard) in rlimits(spec["file_bytes"]).items():
            argv.append(f"--ulimit={name}={soft}:{hard}")
        if spec["memory_bytes"]:
            argv += [f"--memory={spec['memory_bytes']}b", f"--memory-swap={spec['memory_bytes']}b"]
        if spec["cpu_millis"]:
            argv.append(f"--cpus={spec['cpu_millis'] / 1000:g}")
        argv.append(f"--pids-limit={spec['pids'] or -1}")
        for source, target, writable in spec["mounts"]:
            argv.append(f"--volume={source}:{target}:{'rw' if writable else 'ro'}")
        if spec["user"] is not None:
            argv.append("--user={}:{}".format(*spec["user"]))
        if spec["cwd"]:
            argv.append(f"--workdir={spec['cwd']}")
        if spec["command"]:
            argv.append(f"--entrypoint={json.dumps(spec['command'])}")
        image = ["--rootfs", spec["rootfs"]] if spec["rootfs"] else [spec["image"]]
        return [*argv, *image, *spec["args"]]

    def end(self) -> End:
        shown = self._ask("inspect", "--type=container", "--format={{json .State}}", self._spec["name"])
        if shown.returncode != 0:
            return End(started=False, out_of_memory=False)
        state = json.loads(shown.stdout)
        # The zero time marks a container that was created and never started.
        started = not str(state.get("StartedAt", "")).startswith("0001-")
        return End(started, bool(state.get("OOMKilled")))

    def remove(self) -> None:
        subprocess.run(
            remove_argv(self.name, self._client, self._spec["name"]), stdout=subprocess.DEVNULL, check=False
        )

    def _ask(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self._client, *arguments], capture_output=True, text=True, check=False)


class Runc:
    """`runc run` on a bundle of its own; images are root file systems in the runner's image directory."""

    name = "runc"

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec
        self._client: list[str] = spec["client"]

    def prepare(self) -> None:
        rootfs = self._spec["rootfs"]
        if not os.path.isdir(rootfs):
            problem = f"container.image {self._spec['image']!r} is no directory {rootfs!r} on this host"
            raise ImageProblem(f"{problem}; unpack the image's root file system there", permanent=True)
        if not self._spec["command"] and not self._spec["args"]:
            problem = "container.command and container.args are empty"
            raise ImageProblem(f"{problem}; a root file system has no entry point of its own", permanent=True)
        self._check_program([*self._spec["command"], *self._spec["args"]][0])
        os.makedirs(self._spec["bundle"], mode=0o700, exist_ok=True)
        with open(f"{self._spec['bundle']}/config.json", "w") as file:
            json.dump(bundle(self._spec, rlimits(self._spec["file_bytes"])), file)

    def _check_program(self, program: str) -> None:
        """Check for the program, because runc does not distinguish a missing program from other errors."""
        path = self._spec["env"].get("PATH", DEFAULT_PATH)
        folders = [""] if program.startswith("/") else [*path.split(":"), self._spec["cwd"] or "/"]
        rootfs = self._spec["rootfs"]
        if not any(os.path.lexists(f"{rootfs}/{folder}/{program}") for folder in folders):
            problem = f"container.command {program!r} is not in the image {self._spec['image']!r}"
            raise ImageProblem(f"{problem}; correct it or the image", permanent=True)

    def run_argv(self) -> list[str]:
        return [*self._client, "run", "--keep", f"--bundle={self._spec['bundle']}", self._spec["name"]]

    def end(self) -> End:
        shown = subprocess.run(
            [*self._client, "state", self._spec["name"]], capture_output=True, text=True, check=False
        )
        # A container that could not be started is not kept.
        return End(shown.returncode == 0, _oom_kills(self._spec["cgroup"]) > 0)

    def remove(self) -> None:
        argv = remove_argv(self.name, self._client, self._spec["name"])
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


def _oom_kills(cgroup: str) -> int:
    files = (
        f"/sys/fs/cgroup/memory{cgroup}/memory.oom_control",
        f"/sys/fs/cgroup{cgroup}/memory.events",
    )
    for path in files:
        try:
            with open(path) as file:
                return int(dict(line.split() for line in file).get("oom_kill", 0))
        except OSError:
            continue
    return 0


ENGINES: dict[str, Callable[[dict[str, Any]], Engine]] = {"podman": Podman, "runc": Runc}
