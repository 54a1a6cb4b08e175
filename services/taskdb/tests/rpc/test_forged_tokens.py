"""Page and resume tokens that no server has made are rejected, whatever they name."""

from __future__ import annotations

import base64
import json
import struct
from hashlib import blake2b

import grpc
import pytest

from services.taskdb.tests.conftest import Caller
from taskyard import errors
from taskyard.v1 import task_service_pb2
from taskyard_taskdb.domain import page


def _unkeyed(body: bytes, query: str, size: int) -> bytes:
    return blake2b(query.encode() + b"\0" + body, digest_size=size).digest()


def test_a_page_token_that_is_sealed_without_the_key_is_rejected() -> None:
    body = json.dumps([9, 9], separators=(",", ":")).encode()
    for size in (12, 16):
        forged = base64.urlsafe_b64encode(_unkeyed(body, "q", size) + body).decode().rstrip("=")
        with pytest.raises(errors.PageTokenInvalid):
            page.decode_cursor(forged, "q")
    assert page.decode_cursor(page.encode_cursor((9, 9), "q"), "q") == (9, 9)


async def test_a_resume_token_with_another_position_is_rejected(tenant: Caller) -> None:
    await tenant.create()
    request = task_service_pb2.WatchTasksRequest(parent="tenants/default", snapshot=True)
    call = tenant.tasks.WatchTasks(request)
    response = await call.read()
    while not response.snapshot_complete:
        response = await call.read()
    call.cancel()
    token = response.resume_token
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[9:17] = struct.pack(">q", 2**62)
    forged = base64.urlsafe_b64encode(bytes(raw)).decode().rstrip("=")
    request = task_service_pb2.WatchTasksRequest(parent="tenants/default", resume_token=forged)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await tenant.tasks.WatchTasks(request, timeout=5).read()
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
