"""The host of a WASI module: compiles or finds it compiled, opens its directories, runs it, reports its end.

Besides WASI, a module may import from "taskyard":

    progress(percent: i32, text: i32, length: i32) -> i32    0, or -1 if the runner did not take it
    checkpoint(name: i32, length: i32) -> i32                sequence of the file kept, or -1
    stopping() -> i32                                        1 once the run is to end

A module that imports `stopping` is given its grace period to end by itself; any other is interrupted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from wasmtime import (
    Caller,
    Config,
    Engine,
    ExitTrap,
    FuncType,
    Linker,
    Memory,
    Module,
    Store,
    Trap,
    TrapCode,
    ValType,
    WasiConfig,
    WasmtimeError,
)

from taskyard_runner.hosts.runner import ask, write_failure
from taskyard_runner.warden import linux

_CACHED_MODULES = 64
_TERMINATED = 128 + signal.SIGTERM
# From the interruption to the end of a module that waits inside WASI, where none reaches it.
_INTERRUPT_SECONDS = 0.3


class BadModule(Exception):
    """The module cannot be run, now or ever."""


def main() -> NoReturn:
    """Exit code of the module; 1 with TASKYARD_ERROR_FILE after a trap or for a module that is none."""
    parent = os.getppid()
    # Before any thread starts, so that only the one that waits for it takes the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    host = Host(spec, parent)
    try:
        code = host.run()
    except BadModule as error:
        write_failure(spec["error_file"], "START_FAILED", str(error), permanent=True)
        code = 1
    sys.stderr.flush()
    os._exit(code)


class Host:
    """One module, run once."""

    def __init__(self, spec: dict[str, Any], parent: int) -> None:
        self._spec = spec
        self._parent = parent
        config = Config()
        config.epoch_interruption = True
        self._engine = Engine(config)
        self._stopping = False
        self._patient = False

    def run(self) -> int:
        """The exit code. Raises BadModule."""
        module = self._load()
        self._patient = any(
            found.module == "taskyard" and found.name == "stopping" for found in module.imports
        )
        # What comes before needs the runner's rights, what follows is for the module.
        self._become_the_run()
        store = Store(self._engine)
        store.set_epoch_deadline(1)
        if self._spec["memory_bytes"]:
            store.set_limits(memory_size=self._spec["memory_bytes"])
        store.set_wasi(self._wasi())
        linker = Linker(self._engine)
        linker.define_wasi()
        self._offer(linker)
        threading.Thread(target=self._wait_for_stop, daemon=True).start()
        return self._execute(linker, store, module)

    # -- the module

    def _load(self) -> Module:
        content = self._read()
        if content[:4] != b"\0asm":
            raise BadModule(f"{self._spec['name']} is no WebAssembly module")
        digest = hashlib.sha256(content).hexdigest()
        if self._spec["sha256"] not in ("", digest):
            problem = f"{self._spec['name']} has the SHA-256 {digest}, not {self._spec['sha256']}"
            raise BadModule(f"{problem}; correct wasm.sha256 or the file")
        return self._compiled(digest, content)

    def _read(self) -> bytes:
        try:
            with open(self._spec["module"], "rb") as file:
                return file.read()
        except OSError as error:
            raise BadModule(f"{self._spec['name']} cannot be read: {error.strerror}") from None

    def _compiled(self, digest: str, content: bytes) -> Module:
        """From the cache, which only the runner's own user writes, else compiled and put there."""
        path = f"{self._spec['cache']}/{digest}"
        with contextlib.suppress(OSError, WasmtimeError):
            # Of another version of wasmtime: refused by it, and compiled again.
            module = Module.deserialize_file(self._engine, path)
            os.utime(path)
            return module
        try:
            module = Module(self._engine, content)
        except WasmtimeError as error:
            raise BadModule(f"{self._spec['name']} is no valid module: {error}") from None
        with contextlib.suppress(OSError):
            self._keep(path, bytes(module.serialize()))
        return module

    def _keep(self, path: str, compiled: bytes) -> None:
        folder = os.path.dirname(path)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        part = f"{path}.{os.getpid()}"
        with open(part, "wb") as file:
            file.write(compiled)
        os.replace(part, path)
        found = sorted(os.scandir(folder), key=lambda entry: entry.stat().st_mtime)
        for entry in found[:-_CACHED_MODULES]:
            os.unlink(entry.path)

    # -- its surroundings

    def _become_the_run(self) -> None:
        if self._spec["user"] is not None:
            linux.become_user(*self._spec["user"])
            # A change of user takes this mark away.
            linux.die_with(self._parent)

    def _wasi(self) -> WasiConfig:
        spec, wasi = self._spec, WasiConfig()
        wasi.argv = spec["args"]
        wasi.env = list(spec["env"].items())
        wasi.inherit_stdout()
        wasi.inherit_stderr()
        wasi.stdin_file = spec["stdin"] or os.devnull
        for path, guest in spec["directories"]:
            wasi.preopen_dir(path, guest)
        return wasi

    def _offer(self, linker: Linker) -> None:
        i32 = ValType.i32
        offered: dict[str, tuple[list[ValType], Callable[..., int]]] = {
            "progress": ([i32(), i32(), i32()], self._progress),
            "checkpoint": ([i32(), i32()], self._checkpoint),
            "stopping": ([], lambda caller: int(self._stopping)),
        }
        for name, (parameters, function) in offered.items():
            linker.define_func("taskyard", name, FuncType(parameters, [i32()]), function, access_caller=True)

    def _progress(self, caller: Caller, percent: int, text: int, length: int) -> int:
        message = _text(caller, text, length)
        return 0 if self._ask(op="progress", percent=percent, message=message).get("ok") else -1

    def _checkpoint(self, caller: Caller, name: int, length: int) -> int:
        answer = self._ask(op="checkpoint", file=_text(caller, name, length))
        return int(answer["sequence"]) if answer.get("ok") else -1

    def _ask(self, **message: Any) -> dict[str, Any]:
        return ask(self._spec["socket"], self._spec["token"], message)

    # -- its end

    def _execute(self, linker: Linker, store: Store, module: Module) -> int:
        try:
            instance = linker.instantiate(store, module)
            start = instance.exports(store).get("_start")
            if start is None:
                raise BadModule(f"{self._spec['name']} exports no _start; build it as a WASI command")
            start(store)  # type: ignore[operator]
            return 0
        except ExitTrap as end:
            return end.code
        except Trap as trap:
            return self._trapped(trap)
        except WasmtimeError as error:
            return self._refused(str(error))

    def _trapped(self, trap: Trap) -> int:
        if trap.trap_code == TrapCode.INTERRUPT and self._stopping:
            return _TERMINATED
        self._fail("WASM_TRAP", str(trap), permanent=True)
        return 1

    def _refused(self, message: str) -> int:
        if "exceeds memory limits" in message:
            self._fail(
                "OUT_OF_MEMORY", f"the module needs more than its memory limit: {message}", permanent=False
            )
            return 1
        raise BadModule(f"{self._spec['name']} cannot be started: {message}")

    def _fail(self, code: str, message: str, *, permanent: bool) -> None:
        write_failure(self._spec["error_file"], code, message, permanent=permanent)

    def _wait_for_stop(self) -> None:
        """Wait for SIGTERM. The main thread is inside the module, where Python handles no signal."""
        signal.sigwait([signal.SIGTERM])
        self._stopping = True
        if not self._patient:
            self._engine.increment_epoch()
            threading.Event().wait(_INTERRUPT_SECONDS)
            os._exit(_TERMINATED)


def _text(caller: Caller, start: int, length: int) -> str:
    memory = caller.get("memory")
    if not isinstance(memory, Memory):
        return ""
    return bytes(memory.read(caller, start, start + max(0, length))).decode(errors="replace")


if __name__ == "__main__":
    main()
