"""Builders of new tasks, one per kind of execution; each takes taskyard.Options as keywords."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from taskyard.convert import Seconds, to_duration
from taskyard.new_task import CommonOptions, NewTask, Options, new_task
from taskyard.v1 import task_pb2 as pb

INLINE_MODULE_BYTES = 2 * 1024 * 1024


def command(program: str, *args: str, working_directory: str = "", **options: Unpack[Options]) -> NewTask:
    """A program on the runner's host, started without a shell.

    Example:
        new = command("ffmpeg", "-i", "in.mp4", "out.webm", labels={"team": "video"}, timeout=3600)
    """
    execution = pb.CommandExecution(program=program, args=args, working_directory=working_directory)
    return new_task(pb.Execution(command=execution), options)


def function(
    name: str, payload: Any = None, *, task_type: str = "", **options: Unpack[CommonOptions]
) -> NewTask:
    """A function that a runner's application has registered.

    Example:
        new = function("resize", {"width": 640}, retry=3)
    """
    execution = pb.Execution(function=pb.FunctionExecution(function=name))
    return new_task(execution, {**options, "payload": payload, "task_type": task_type})


def container(
    image: str,
    *args: str,
    entrypoint: Sequence[str] = (),
    working_directory: str = "",
    network: bool = False,
    **options: Unpack[Options],
) -> NewTask:
    """An OCI container; `args` go to its entry point, and it has no network unless `network` is set.

    Example:
        new = container("docker.io/library/alpine:3", "echo", "hello", memory_mb=256)
    """
    execution = pb.ContainerExecution(
        image=image, command=entrypoint, args=args, working_directory=working_directory, network=network
    )
    return new_task(pb.Execution(container=execution), options)


def wasm(module: bytes | Path | str, *args: str, sha256: str = "", **options: Unpack[Options]) -> NewTask:
    """A WASI module: its bytes, the Path of a file here, or as text its path on the runner's host.

    A path on the host needs the module's SHA-256 in hexadecimal, so that the intended module runs.

    Example:
        new = wasm("/opt/modules/resize.wasm", "--width", "640", sha256="ab" * 32)
    """
    if isinstance(module, str):
        if not sha256:
            raise ValueError(f"wasm({module!r}) names a file on the runner's host; give its sha256 as well")
        execution = pb.WasmExecution(path=module, sha256=bytes.fromhex(sha256), args=args)
        return new_task(pb.Execution(wasm=execution), options)
    content = module.read_bytes() if isinstance(module, Path) else module
    if len(content) > INLINE_MODULE_BYTES:
        raise ValueError(
            f"the module has {len(content)} bytes, more than the {INLINE_MODULE_BYTES} that can be sent;"
            " put it on the runners' hosts and give its path and sha256"
        )
    import hashlib

    digest = bytes.fromhex(sha256) or hashlib.sha256(content).digest()
    return new_task(pb.Execution(wasm=pb.WasmExecution(inline=content, sha256=digest, args=args)), options)


def external(report_timeout: Seconds | None = None, **options: Unpack[Options]) -> NewTask:
    """Work that its owner executes and reports; no runner is involved.

    Example:
        new = external(report_timeout=3600, labels={"printer": "2"})
    """
    execution = pb.ExternalExecution()
    if report_timeout is not None:
        execution.report_timeout.CopyFrom(to_duration(report_timeout))
    return new_task(pb.Execution(external=execution), options)


def typed(task_type: str, payload: Any = None, **options: Unpack[CommonOptions]) -> NewTask:
    """A task of a registered type; the type defines what is executed.

    Example:
        new = typed("encode", {"input": "in.mp4"}, priority=50)
    """
    return new_task(None, {**options, "payload": payload, "task_type": task_type})
