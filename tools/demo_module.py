"""Writes a small WASI module that prints hello, for the demo."""

import sys

import wasmtime

HELLO = """
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hello from a sandbox\\n")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 16))
    (i32.store (i32.const 4) (i32.const 21))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
"""

sys.stdout.buffer.write(bytes(wasmtime.wat2wasm(HELLO)))
