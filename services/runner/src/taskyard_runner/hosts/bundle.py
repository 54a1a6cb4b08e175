"""The configuration of a runc bundle: the OCI runtime specification for one container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taskyard_runner.hosts.seccomp import profile

_PERIOD_US = 100_000
_NAMESPACES = ("pid", "ipc", "uts", "mount", "cgroup")
_MASKED = (
    "acpi",
    "asound",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
)
_READ_ONLY = ("bus", "fs", "irq", "sys", "sysrq-trigger")
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def bundle(spec: Mapping[str, Any], rlimits: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    """What `config.json` holds. The root file system is shared and stays as it is, so it is read-only."""
    spaces = _NAMESPACES if spec["network"] else (*_NAMESPACES, "network")
    return {
        "ociVersion": "1.0.2",
        "hostname": spec["name"][:63],
        "root": {"path": spec["rootfs"], "readonly": True},
        "process": _process(spec, rlimits),
        "mounts": [*_system_mounts(), *(_bind(*mount) for mount in spec["mounts"])],
        "linux": {
            "namespaces": [{"type": name} for name in spaces],
            "cgroupsPath": spec["cgroup"],
            "resources": _resources(spec),
            "maskedPaths": [f"/proc/{name}" for name in _MASKED] + ["/sys/firmware"],
            "readonlyPaths": [f"/proc/{name}" for name in _READ_ONLY],
            "seccomp": profile(),
        },
    }


def _process(spec: Mapping[str, Any], rlimits: Mapping[str, tuple[int, int]]) -> dict[str, Any]:
    uid, gid = spec["user"] or (0, 0)
    env = {"PATH": DEFAULT_PATH, **spec["env"]}
    return {
        "terminal": False,
        "user": {"uid": uid, "gid": gid},
        "args": [*spec["command"], *spec["args"]],
        "env": [f"{name}={value}" for name, value in env.items()],
        "cwd": spec["cwd"] or "/",
        "capabilities": {},
        "noNewPrivileges": True,
        "rlimits": [
            {"type": f"RLIMIT_{name.upper()}", "soft": soft, "hard": hard}
            for name, (soft, hard) in rlimits.items()
        ],
    }


def _system_mounts() -> list[dict[str, Any]]:
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        _tmpfs("/dev", "strictatime", "mode=755", "size=65536k"),
        _tmpfs("/dev/shm", "nodev", "noexec", "mode=1777", "size=65536k"),
        _tmpfs("/tmp", "nodev", "mode=1777"),
        # The run's own directories are mounted below it.
        _tmpfs("/run", "nodev", "mode=755"),
    ]


def _tmpfs(target: str, *options: str) -> dict[str, Any]:
    return {"destination": target, "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", *options]}


def _bind(source: str, target: str, writable: bool) -> dict[str, Any]:
    options = ["bind", "nosuid", "nodev", "rw" if writable else "ro"]
    return {"destination": target, "type": "bind", "source": source, "options": options}


def _resources(spec: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"devices": [{"allow": False, "access": "rwm"}]}
    if spec["memory_bytes"]:
        found["memory"] = {"limit": spec["memory_bytes"], "swap": spec["memory_bytes"]}
    if spec["cpu_millis"]:
        found["cpu"] = {"period": _PERIOD_US, "quota": spec["cpu_millis"] * _PERIOD_US // 1000}
    if spec["pids"]:
        found["pids"] = {"limit": spec["pids"]}
    return found
