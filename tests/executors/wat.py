"""WASI modules in WebAssembly text for the table: a few helpers, then a body per behaviour."""

from __future__ import annotations

from wasmtime import wat2wasm

# Descriptors of the directories that the host opens for a module, in their order.
PRIVATE, CHECKPOINT = 4, 5

_PRELUDE = """
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read"
    (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_close" (func $fd_close (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff"
    (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  %(imports)s
  (memory (export "memory") %(pages)d)
  %(data)s
  ;; Writes a piece of memory to a descriptor.
  (func $write (param $fd i32) (param $text i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $text))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  ;; Opens a file below a directory; the descriptor, or -1.
  (func $open (param $directory i32) (param $name i32) (param $length i32) (param $flags i32) (result i32)
    (if (result i32)
      (call $path_open (local.get $directory) (i32.const 0) (local.get $name) (local.get $length)
        (local.get $flags) (i64.const 0x42) (i64.const 0) (i32.const 0) (i32.const 12))
      (then (i32.const -1))
      (else (i32.load (i32.const 12)))))
  ;; Waits for two seconds.
  (func $sleep
    (i32.store (i32.const 32) (i32.const 0))
    (i32.store8 (i32.const 40) (i32.const 0))
    (i32.store (i32.const 48) (i32.const 1))
    (i64.store (i32.const 56) (i64.const 2000000000))
    (drop (call $poll_oneoff (i32.const 32) (i32.const 128) (i32.const 1) (i32.const 8))))
  (func (export "_start") (local $fd i32)
    %(body)s))
"""
PROGRESS = '(import "taskyard" "progress" (func $progress (param i32 i32 i32) (result i32)))'
KEEP = '(import "taskyard" "checkpoint" (func $keep (param i32 i32) (result i32)))'
STOPPING = '(import "taskyard" "stopping" (func $stopping (result i32)))'


class Program:
    """Collects texts in memory and instructions; `build` makes the module."""

    def __init__(self, *imports: str, pages: int = 2) -> None:
        self._imports = imports
        self._pages = pages
        self._data: list[str] = []
        self._body: list[str] = []
        self._next = 1024

    def text(self, text: str) -> str:
        """Put a text into memory; its address and length as operands."""
        start, length = self._next, len(text.encode())
        escaped = "".join(f"\\{byte:02x}" for byte in text.encode())
        self._data.append(f'(data (i32.const {start}) "{escaped}")')
        self._next += length
        return f"(i32.const {start}) (i32.const {length})"

    def print(self, line: str) -> Program:
        """Print a line."""
        return self.do(f"(call $write (i32.const 1) {self.text(line + chr(10))})")

    def do(self, instructions: str) -> Program:
        """Anything else."""
        self._body.append(instructions)
        return self

    def build(self) -> bytes:
        """The module."""
        parts = {
            "imports": "\n".join(self._imports),
            "pages": self._pages,
            "data": "\n".join(self._data),
            "body": "\n".join(self._body),
        }
        return bytes(wat2wasm(_PRELUDE % parts))
