"""The result of a task: its output, or an error with what went wrong where it ran."""

import asyncio
import pickle

import pytest

from clients.python.tests.task_server import TaskServer
from clients.python.tests.test_follow import lines
from taskyard import Client, Phase, Task, TaskFailed, tracing
from taskyard.client import function_name
from taskyard.convert import to_payload
from taskyard.v1 import common_pb2, task_pb2

FAILED = task_pb2.TASK_PHASE_FAILED


def ended(phase: Phase, output: object = None, **error: object) -> Task:
    task = task_pb2.Task(name="tenants/default/tasks/t")
    task.status.phase = task_pb2.TaskPhase.ValueType(int(phase))
    if output is not None:
        task.status.result.output.CopyFrom(to_payload(output))
    if error:
        details = error.pop("details", {})
        task.status.error.CopyFrom(common_pb2.TaskError(**error))  # type: ignore[arg-type]
        task.status.error.details.update(details)  # type: ignore[arg-type]
    return Task(task)


def test_the_result_of_a_success_is_its_output() -> None:
    task = ended(Phase.SUCCEEDED, {"width": 640})
    assert task.succeeded and task.result == {"width": 640}
    assert ended(Phase.SUCCEEDED).result is None


def test_the_result_of_a_failure_raises_with_the_remote_traceback() -> None:
    details = {"traceback": 'File "worker.py", line 3\nValueError: no', "exception": "ValueError"}
    task = ended(Phase.FAILED, code="EXCEPTION", message="ValueError: no", details=details)
    assert not task.succeeded
    with pytest.raises(TaskFailed) as caught:
        _ = task.result
    failed = caught.value
    assert (failed.failure.code, failed.traceback) == ("EXCEPTION", details["traceback"])
    assert str(failed).startswith("task t FAILED: EXCEPTION: ValueError: no") and "worker.py" in str(failed)
    assert str(pickle.loads(pickle.dumps(failed))) == str(failed)


def test_a_live_task_has_no_result() -> None:
    with pytest.raises(RuntimeError, match="t is RUNNING and has no result yet"):
        _ = ended(Phase.RUNNING).result


async def test_call_creates_a_function_task_and_returns_its_result(
    client: Client, server: TaskServer
) -> None:
    server.ended.set()
    assert await client.call("greet", {"name": "Ada"}, labels={"a": "b"}) is None
    (created,) = server.requests("CreateTask")
    assert created.task.spec.execution.function.function == "greet"
    assert created.task.metadata.labels == {"a": "b"}


async def test_call_raises_what_became_of_the_task(client: Client, server: TaskServer) -> None:
    server.outcome = (FAILED, None)
    server.ended.set()
    with pytest.raises(TaskFailed, match="task t0 FAILED"):
        await client.call("greet")
    server.ended.clear()
    with pytest.raises(TimeoutError):
        await client.call("greet", deadline=0.1)


def test_a_function_is_called_by_the_name_it_is_registered_with() -> None:
    def greet() -> None: ...

    assert function_name(greet) == "greet"
    greet.__taskyard_name__ = "say-hello"  # type: ignore[attr-defined]
    assert function_name(greet) == "say-hello"


async def test_a_log_that_was_read_leaves_no_failed_span(
    client: Client, server: TaskServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

    ended_spans: asyncio.Queue[ReadableSpan] = asyncio.Queue()

    class Ended(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            if "TailTaskLogs" in span.name:
                ended_spans.put_nowait(span)

    provider = TracerProvider()
    provider.add_span_processor(Ended())
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("test"))
    server.scripts = [[lines("k1", 1, 2), lines("k2", complete=True)], [lines("k1", 1, 2), lines("k2", 3)]]
    assert len([entry async for entry in client.logs("a")]) == 2
    left = client.logs("a", follow=True)
    async for _ in left:
        break
    await left.aclose()
    async with asyncio.timeout(30):
        for _ in range(2):
            assert (await ended_spans.get()).status.status_code.name == "UNSET"
