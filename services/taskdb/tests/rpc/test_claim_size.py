"""The answer of a claim stays within what a scheduler receives; what does not fit is claimed later."""

from __future__ import annotations

import pytest

from services.taskdb.tests.rpc.type_calls import register
from services.taskdb.tests.yard import Yard, started, succeeded
from taskyard.v1 import common_pb2

KIB = 1024


async def drain(yard: Yard, *, packed: bool) -> list[str]:
    """Claim until nothing is left."""
    runner, _ = await yard.hello()
    done: list[str] = []
    while found := (await yard.claim(runner, packed=packed)).assignments:
        for one in found:
            await yard.report(runner, started(one), succeeded(one))
        done += [one.lease.task for one in found]
    return done


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "messages"])
async def test_a_configuration_that_every_assignment_carries_counts(yard: Yard, packed: bool) -> None:
    config = common_pb2.Payload(raw=b'"' + b"x" * (1000 * KIB) + b'"')
    await register(yard.tenant, "large", config=config)
    names = await yard.create(8, task_type="large")
    assert sorted(await drain(yard, packed=packed)) == sorted(names)


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "messages"])
async def test_a_payload_counts_as_the_runner_gets_it(yard: Yard, packed: bool) -> None:
    """Characters that JSON escapes take six bytes of a document and one of a structure."""
    payload = common_pb2.Payload()
    payload.json.update({"text": "\1" * (60 * KIB)})
    names = await yard.create(20, payload=payload)
    assert sorted(await drain(yard, packed=packed)) == sorted(names)
