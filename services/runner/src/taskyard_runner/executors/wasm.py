"""Wasm: a WASI module inside a host process, which limits its memory and ends it on request."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys

from taskyard.v1.task_pb2 import WasmExecution
from taskyard_runner.executors.workload import INSIDE, NotRunnable, Place, Workload, check_text, host_env

MAX_INLINE_BYTES = 2 << 20
# Python, wasmtime and the compiler, beside the module's own memory.
_OVERHEAD_MB = 192
_HOST_VARIABLES = ("TASKYARD_SOCKET", "TASKYARD_TOKEN")
_HOST = "taskyard_runner.hosts.wasm"


def problem() -> str:
    """Why this runner cannot run modules; empty if it may be tried."""
    if importlib.util.find_spec("wasmtime") is None:
        return "the package wasmtime is not installed: pip install 'taskyard-runner[wasm]'"
    return ""


def describe(execution: WasmExecution, place: Place) -> Workload:
    """The host process and its specification. Raises NotRunnable."""
    for number, argument in enumerate(execution.args):
        check_text(f"wasm.args[{number}]", argument)
    spec_file = place.private / "wasm.json"
    files = [(spec_file, json.dumps(_spec(execution, place)).encode())]
    if execution.WhichOneof("module") == "inline":
        files.append((place.private / "module.wasm", _inline(execution)))
    argv = [sys.executable, "-I", "-m", _HOST, str(spec_file)]
    return Workload(argv, str(place.work), host_env(place), files, overhead_mb=_OVERHEAD_MB, trusted=True)


def _spec(execution: WasmExecution, place: Place) -> dict[str, object]:
    inline = execution.WhichOneof("module") == "inline"
    module = str(place.private / "module.wasm") if inline else _path(execution)
    env = {name: value for name, value in place.env.items() if name not in _HOST_VARIABLES}
    payload = place.private / "payload"
    inside = [(f"{INSIDE}/{name}", name) for name in ("private", "checkpoint", "work", "tmp")]
    return {
        "module": module,
        "name": "the module" if inline else f"wasm.path {module!r}",
        "sha256": execution.sha256.hex(),
        "cache": str(place.data_dir / "wasm"),
        "args": [os.path.basename(module), *execution.args],
        "env": env,
        "stdin": str(payload) if "TASKYARD_PAYLOAD_FILE" in env else "",
        "directories": [(str(place.work), "."), *((str(place.root / name), guest) for guest, name in inside)],
        "memory_bytes": place.memory_mb << 20,
        "error_file": str(place.private / "error"),
        "socket": place.env.get("TASKYARD_SOCKET", ""),
        "token": place.env.get("TASKYARD_TOKEN", ""),
        "user": place.user,
    }


def _inline(execution: WasmExecution) -> bytes:
    content = execution.inline
    if len(content) > MAX_INLINE_BYTES:
        raise NotRunnable(f"wasm.inline has {len(content)} bytes; the limit is {MAX_INLINE_BYTES}")
    digest = hashlib.sha256(content)
    if execution.sha256 not in (b"", digest.digest()):
        problem = f"wasm.inline has the SHA-256 {digest.hexdigest()}, not {execution.sha256.hex()}"
        raise NotRunnable(f"{problem}; correct wasm.sha256")
    return content


def _path(execution: WasmExecution) -> str:
    path = execution.path
    check_text("wasm.path", path)
    if not path.startswith("/"):
        raise NotRunnable(f"wasm.path {path!r} is no absolute path; send the module inline or name its path")
    if len(execution.sha256) != 32:
        raise NotRunnable("wasm.sha256 must be the SHA-256 of the module, 32 bytes, when wasm.path is used")
    if not os.path.isfile(path):
        raise NotRunnable(
            f"wasm.path {path!r} is no file of this host; put the module there or send it inline"
        )
    return path
