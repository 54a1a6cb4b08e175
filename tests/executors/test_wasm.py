"""Wasm passes the table: WASI modules under wasmtime, and what is particular to them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import ClassVar, Unpack

import pytest

from taskyard import NewTask, Options, Phase, wasm
from tests.executors.bench import Bench
from tests.executors.cases import ExecutorCases
from tests.executors.wat import CHECKPOINT, KEEP, PRIVATE, PROGRESS, STOPPING, Program

_CREATE = 1
_FOREVER = "(loop $again (br $again))"


class Modules:
    flags: ClassVar[tuple[str, ...]] = ("--kind", "wasm")
    memory_code: ClassVar[str] = "OUT_OF_MEMORY"

    def prints(self, *lines: str, **options: Unpack[Options]) -> NewTask:
        program = Program()
        for line in lines:
            program.print(line)
        return wasm(program.build(), **options)

    def fails(self, **options: Unpack[Options]) -> NewTask:
        return wasm(Program().do("(call $exit (i32.const 3))").build(), **options)

    def fails_for_good(self, **options: Unpack[Options]) -> NewTask:
        return wasm(Program().do("unreachable").build(), **options)

    def hangs(self, **options: Unpack[Options]) -> NewTask:
        return wasm(Program().print("ready").do(_FOREVER).build(), **options)

    def counts(self, **options: Unpack[Options]) -> NewTask:
        program = Program(KEEP, STOPPING)
        restored = f"(call $open (i32.const {CHECKPOINT}) {program.text('restored')} (i32.const 0))"
        program.do(f"(if (i32.ne {restored} (i32.const -1)) (then")
        program.print("from 1").do("(call $exit (i32.const 0))))").print("from 0")
        state = program.text("state")
        program.do(
            f"(local.set $fd (call $open (i32.const {CHECKPOINT}) {state} (i32.const {_CREATE})))"
            f"(call $write (local.get $fd) {program.text('1')})"
            f"(drop (call $fd_close (local.get $fd))) (drop (call $keep {state}))"
        )
        program.print("ready").do("(loop $again (br_if $again (i32.eqz (call $stopping))))")
        return wasm(program.build(), **options)

    def reports_progress(self, **options: Unpack[Options]) -> NewTask:
        program = Program(PROGRESS)
        program.do(f"(call $exit (call $progress (i32.const 60) {program.text('half')}))")
        return wasm(program.build(), **options)

    def returns(self, **options: Unpack[Options]) -> NewTask:
        program = Program()
        opened = f"(call $open (i32.const {PRIVATE}) {program.text('result')} (i32.const {_CREATE}))"
        result = program.text('{"sum": 42}')
        program.do(f"(call $write {opened} {result})")
        return wasm(program.build(), **options)

    def takes_memory(self, **options: Unpack[Options]) -> NewTask:
        return wasm(Program(pages=6400).build(), **options)

    def lingers(self, **options: Unpack[Options]) -> NewTask:
        return wasm(Program().print("before").do("(call $sleep)").print("after").build(), **options)


class TestWasm(ExecutorCases):
    kind = Modules()

    async def test_memory_grows_up_to_the_limit_and_no_further(self, bench: Bench) -> None:
        grow = "(call $exit (i32.eq (memory.grow (i32.const {})) (i32.const -1)))"
        within = await bench.run(wasm(Program().do(grow.format(512)).build(), memory_mb=64, retry=0))
        beyond = await bench.run(wasm(Program().do(grow.format(2048)).build(), memory_mb=64, retry=0))
        assert (within.exit_code, beyond.exit_code) == (0, 1)

    async def test_the_payload_is_standard_input(self, bench: Bench) -> None:
        program = Program().do(
            """
            (i32.store (i32.const 0) (i32.const 2048)) (i32.store (i32.const 4) (i32.const 100))
            (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
            (call $write (i32.const 1) (i32.const 2048) (i32.load (i32.const 8)))
            """
        )
        task = await bench.run(wasm(program.build(), payload={"a": 1}))
        assert await bench.lines(task) == ['{"a":1}']

    async def test_a_module_on_the_host_must_have_the_digest_that_was_named(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        file = tmp_path / "hello.wasm"
        file.write_bytes(Program().print("hello").build())
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        task = await bench.run(wasm(str(file), sha256=digest))
        assert (task.phase, await bench.lines(task)) == (Phase.SUCCEEDED, ["hello"])
        other = await bench.run(wasm(str(file), sha256="0" * 64))
        assert other.phase is Phase.FAILED and other.error is not None
        assert other.error.code == "START_FAILED" and digest in other.error.message

    async def test_a_compiled_module_is_kept_by_its_digest(self, bench: Bench) -> None:
        module = Program().print("cached").build()
        kept = bench.runner.data_dir / "wasm" / hashlib.sha256(module).hexdigest()
        await bench.run(wasm(module))
        compiled = kept.stat().st_ino
        await bench.run(wasm(module))
        assert kept.stat().st_ino == compiled

    @pytest.mark.parametrize("module", [b"", b"#!/bin/sh", b"\0asm\1\0\0\0garbage"])
    async def test_an_invalid_module_is_a_permanent_error(self, bench: Bench, module: bytes) -> None:
        task = await bench.run(wasm(module, retry=3))
        assert (task.phase, task.attempt) == (Phase.FAILED, 1)
        assert task.error is not None and task.error.code == "START_FAILED", task.proto

    async def test_the_hosts_environment_and_files_are_out_of_reach(self, bench: Bench) -> None:
        program = Program()
        for name in ("/etc/passwd", "../../../../etc/passwd"):
            opened = f"(call $open (i32.const {PRIVATE}) {program.text(name)} (i32.const 0))"
            program.do(f"(if (i32.ne {opened} (i32.const -1)) (then (call $exit (i32.const 1))))")
        task = await bench.run(wasm(program.build(), env={"LD_PRELOAD": "/nowhere.so", "PYTHONPATH": "/"}))
        assert task.phase is Phase.SUCCEEDED, task.proto
