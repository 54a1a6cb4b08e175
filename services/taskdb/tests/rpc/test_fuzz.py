"""Random calls of every public unary RPC: no INTERNAL, no UNKNOWN, no hang, and other tenants work on.

`make fuzz` makes 100,000 calls; TASKYARD_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor import MethodDescriptor

from services.taskdb.tests.conftest import RunningTaskDb, make_key, new_task
from services.taskdb.tests.rpc.fuzz_messages import Fuzzer
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.v1 import lease_service_pb2, task_pb2
from taskyard_kit.auth import Kind
from taskyard_taskdb.access_policy import POLICIES
from taskyard_taskdb.storage.tenant import api_keys

CALLS = int(os.environ.get("TASKYARD_FUZZ_CALLS", "2000"))
FRESH = int(os.environ.get("TASKYARD_FUZZ_SEED", str(time.time_ns() % 2**32)))
PARALLEL = 8
# A call that takes longer hangs. WaitTask waits as long as it is asked to.
LIMIT_SECONDS = 20.0
WAITS = "/taskyard.v1.TaskService/WaitTask"
BAD = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}


def public_methods() -> dict[str, MethodDescriptor]:
    """The unary RPCs that keys of users may call."""
    found = {}
    for path, policy in POLICIES.items():
        _, service, name = path.split("/")
        method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        streams = method.client_streaming or method.server_streaming
        if not streams and policy.kinds & {Kind.TENANT, Kind.ADMIN} and ".compat." not in path:
            found[path] = method
    return found


@pytest.mark.parametrize("seed", [pytest.param(18, id="fixed"), pytest.param(FRESH, id="fresh")])
async def test_no_call_fails_by_a_defect_and_another_tenant_works_on(
    taskdb: RunningTaskDb, yard: Yard, seed: int
) -> None:
    print(f"TASKYARD_FUZZ_SEED={seed}")
    for tenant_id in ("fuzz", "fuzz2"):
        await taskdb.add_tenant(tenant_id)
    keys = [await make_key(taskdb.pool, api_keys.TENANT, "fuzz"), await make_key(taskdb.pool, api_keys.ADMIN)]
    bad, codes = await _fuzz(taskdb.address, keys, seed)
    print(dict(codes))
    assert not bad, f"seed {seed}: " + "\n".join(bad[:20])
    assert codes["OK"] > CALLS / 100, codes
    (name,) = await yard.create()
    runner, _ = await yard.hello()
    lanes = [
        lease_service_pb2.LaneClaim(lane=lane.key) for lane in await yard.lanes() if lane.tenant == "default"
    ]
    (assignment,) = [a for a in (await yard.claim(runner, lanes=lanes)).assignments if a.lease.task == name]
    await yard.report(runner, started(assignment), succeeded(assignment))
    assert (await yard.task(name)).status.phase == task_pb2.TASK_PHASE_SUCCEEDED


async def _fuzz(address: str, keys: list[str], seed: int) -> tuple[list[str], Counter[str]]:
    names = [f"tenants/{tenant}/{kind}/a" for tenant in ("fuzz", "fuzz2") for kind in ("tasks", "taskTypes")]
    fuzzer = Fuzzer(seed, ["tenants/fuzz", "tenants/fuzz2", "runners/a", "fuzz2", "a", *names, names[0]])
    methods, bad, codes = public_methods(), list[str](), Counter[str]()
    calls = iter(range(CALLS))

    async def work(channel: grpc.aio.Channel) -> None:
        for _ in calls:
            path = fuzzer.rng.choice(list(methods))
            request = _request(fuzzer, methods[path])
            metadata = (("authorization", f"Bearer {fuzzer.rng.choice(keys)}"),)
            call: Any = channel.unary_unary(path)
            limit = 0.2 if path == WAITS else LIMIT_SECONDS
            try:
                await call(request.SerializeToString(), metadata=metadata, timeout=limit)
                codes["OK"] += 1
            except grpc.aio.AioRpcError as error:
                codes[error.code().name] += 1
                late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and path != WAITS
                if error.code() in BAD or late:
                    bad.append(f"{path} {error.code().name} {error.details()}: {str(request)[:1000]!r}")

    async with grpc.aio.insecure_channel(address) as channel:
        await asyncio.gather(*(work(channel) for _ in range(PARALLEL)))
    return bad, codes


def _request(fuzzer: Fuzzer, method: MethodDescriptor) -> Any:
    request: Any = message_factory.GetMessageClass(method.input_type)()
    if fuzzer.rng.random() < 0.3:
        fuzzer.fill(request, fuzzer.rng.choice((0.1, 0.3, 0.7)))
        return request
    # A request that is likely to be valid, with a few fields that are not.
    for field in ("parent", "name"):
        if field in request.DESCRIPTOR.fields_by_name:
            kind = "tenants/fuzz" if field == "parent" else "tenants/fuzz/tasks/a"
            setattr(request, field, kind)
    if method.name == "CreateTask":
        request.MergeFrom(new_task("tenants/fuzz", task_id=fuzzer.rng.choice(("", "a"))))
    if method.name == "CreateTaskType":
        request.task_type_id = "a"
    fuzzer.mutate(request, fuzzer.rng.choice((0, 1, 1, 2, 3)))
    return request
