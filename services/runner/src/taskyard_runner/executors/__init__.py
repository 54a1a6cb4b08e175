"""What turns a task's execution into a plain process; one module per kind.

A kind is listed here once it is whole; a task of any other kind is given back as unsupported.
"""

from __future__ import annotations

from taskyard.v1.task_pb2 import Execution
from taskyard_runner.executors import command, container, script, wasm
from taskyard_runner.executors.workload import (
    INSIDE,
    Containers,
    Engine,
    NotRunnable,
    Place,
    Unsupported,
    Workload,
)

__all__ = [
    "INSIDE",
    "Containers",
    "Engine",
    "NotRunnable",
    "Place",
    "Unsupported",
    "Workload",
    "describe",
    "is_enclosed",
]


def is_enclosed(execution: Execution) -> bool:
    """Whether the workload sees files of its run alone, at INSIDE, and nothing of the host."""
    return execution.WhichOneof("kind") in ("container", "wasm")


def describe(execution: Execution, place: Place) -> Workload:
    """The process that carries the execution out. Raises NotRunnable or Unsupported."""
    match execution.WhichOneof("kind"):
        case "command":
            return command.describe(execution.command, place)
        case "script":
            return script.describe(execution.script, place)
        case "container":
            return container.describe(execution.container, place)
        case "wasm":
            return wasm.describe(execution.wasm, place)
        case other:
            raise Unsupported(f"execution kind {other or 'unset'} is not supported by this runner")
