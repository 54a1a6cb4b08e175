"""The system calls that containers of runc are refused: those that reach, or reached, beyond one."""

from __future__ import annotations

import platform
from typing import Any

_EPERM, _ENOSYS = 1, 38
_ARCHITECTURES = {
    "x86_64": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
    "aarch64": ["SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"],
}
_REFUSED = [
    "acct",
    "add_key",
    "bpf",
    "clock_adjtime",
    "clock_settime",
    "delete_module",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "name_to_handle_at",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pivot_root",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "quotactl_fd",
    "reboot",
    "request_key",
    "setns",
    "settimeofday",
    "stime",
    "swapoff",
    "swapon",
    "syslog",
    "umount",
    "umount2",
    "unshare",
    "userfaultfd",
    "uselib",
    "ustat",
    "vm86",
    "vm86old",
]
# CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)


def profile() -> dict[str, Any]:
    """The part `seccomp` of a bundle."""
    refused = [_refuse(_REFUSED)]
    refused += [_refuse(["clone"], [_has_flag(flag)]) for flag in _NEW_NAMESPACES]
    # Its flags lie in memory, where no filter sees them; programs then use clone.
    refused.append({**_refuse(["clone3"]), "errnoRet": _ENOSYS})
    found: dict[str, Any] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": refused}
    if (machine := platform.machine()) in _ARCHITECTURES:
        found["architectures"] = _ARCHITECTURES[machine]
    return found


def _refuse(names: list[str], args: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": _EPERM, "args": args or []}


def _has_flag(flag: int) -> dict[str, Any]:
    return {"index": 0, "value": flag, "valueTwo": flag, "op": "SCMP_CMP_MASKED_EQ"}
