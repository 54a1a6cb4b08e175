"""Sign-in codes: valid once, for a short time, with the rights of the key that made them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.taskdb.tests.conftest import Caller, RunningTaskDb, new_task
from services.taskdb.tests.rpc.test_api_keys import holder, make, revoke, works
from taskyard import errors
from taskyard.v1 import api_key_pb2, api_key_service_pb2, task_service_pb2

Service = api_key_service_pb2


async def code_of(caller: Caller, **fields: Any) -> str:
    made = await caller.api_keys.CreateSignInCode(Service.CreateSignInCodeRequest(**fields))
    return str(made.code)


async def redeem(taskdb: RunningTaskDb, code: str, **fields: Any) -> Service.RedeemSignInCodeResponse:
    """What a browser without any key gets for a code."""
    request = Service.RedeemSignInCodeRequest(code=code, **fields)
    answer: Service.RedeemSignInCodeResponse = await holder(taskdb, "").api_keys.RedeemSignInCode(request)
    return answer


async def test_code_is_exchanged_once_for_a_key_with_the_rights_of_its_maker(
    taskdb: RunningTaskDb, admin: Caller
) -> None:
    made = await make(admin, "viewer1", read_only=True)
    code = await code_of(holder(taskdb, made.secret))
    answer = await redeem(taskdb, code)
    key = answer.api_key
    assert (key.tenant, key.read_only, key.parent) == ("default", True, "apiKeys/viewer1")
    signed_in = holder(taskdb, answer.secret)
    assert await works(signed_in)
    with pytest.raises(errors.PermissionDenied):
        await signed_in.tasks.CreateTask(new_task())
    with pytest.raises(errors.SignInCodeInvalid, match="used"):
        await redeem(taskdb, code)


async def test_of_many_browsers_with_one_code_one_signs_in(taskdb: RunningTaskDb, tenant: Caller) -> None:
    code = await code_of(tenant)
    answers = await asyncio.gather(*(redeem(taskdb, code) for _ in range(20)), return_exceptions=True)
    signed_in = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(signed_in) == 1
    assert all(isinstance(answer, errors.SignInCodeInvalid) for answer in answers if answer not in signed_in)


@pytest.mark.covers("RedeemSignInCode", "SIGN_IN_CODE_INVALID")
async def test_unknown_expired_and_damaged_codes_are_refused(taskdb: RunningTaskDb, tenant: Caller) -> None:
    code = await code_of(tenant)
    late = await code_of(tenant)
    ended = "UPDATE sign_in_codes SET expire_time = now() WHERE code_id = %s"
    await taskdb.execute(ended, late.split("_")[1])
    for wrong in (late, "nonsense", code[:-1] + ("0" if code[-1] != "0" else "1"), "ty_abcdef_" + "0" * 64):
        with pytest.raises(errors.SignInCodeInvalid):
            await redeem(taskdb, wrong)
    assert (await redeem(taskdb, code)).secret


async def test_a_code_is_no_key(taskdb: RunningTaskDb, tenant: Caller) -> None:
    assert not await works(holder(taskdb, await code_of(tenant)))


async def test_revoking_a_key_ends_its_codes_and_sign_ins_at_once(
    taskdb: RunningTaskDb, admin: Caller
) -> None:
    made = await make(admin, "owner1")
    owner = holder(taskdb, made.secret)
    signed_in = holder(taskdb, (await redeem(taskdb, await code_of(owner))).secret)
    # A sign-in that made a code of its own belongs to the same key.
    again = holder(taskdb, (await redeem(taskdb, await code_of(signed_in))).secret)
    unused = await code_of(owner)
    assert await works(signed_in) and await works(again)
    await revoke(admin, "apiKeys/owner1")
    assert not await works(signed_in) and not await works(again)
    with pytest.raises(errors.SignInCodeInvalid):
        await redeem(taskdb, unused)


async def test_sign_in_ends_no_later_than_its_key(taskdb: RunningTaskDb, admin: Caller) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=10)
    expire_time = Timestamp()
    expire_time.FromDatetime(soon)
    made = await make(admin, "short1", expire_time=expire_time)
    answer = await redeem(taskdb, await code_of(holder(taskdb, made.secret)))
    assert answer.api_key.expire_time.ToDatetime(UTC) == soon
    endless = await make(admin, "long1")
    hour = Duration(seconds=3600)
    answer = await redeem(taskdb, await code_of(holder(taskdb, endless.secret)), valid_for=hour)
    left = answer.api_key.expire_time.ToDatetime(UTC) - datetime.now(UTC)
    assert timedelta(minutes=50) < left <= timedelta(hours=1)


async def test_a_key_has_at_most_ten_codes(taskdb: RunningTaskDb, tenant: Caller) -> None:
    codes = [await code_of(tenant) for _ in range(12)]
    with pytest.raises(errors.SignInCodeInvalid):
        await redeem(taskdb, codes[0])
    assert await taskdb.rows("SELECT count(*) FROM sign_in_codes") == [(10,)]
    assert (await redeem(taskdb, codes[-1])).secret


async def test_codes_and_sign_ins_are_audited_without_their_secrets(
    taskdb: RunningTaskDb, admin: Caller
) -> None:
    made = await make(admin, "audited1")
    code = await code_of(holder(taskdb, made.secret))
    answer = await redeem(taskdb, code)
    request = task_service_pb2.ListAuditEventsRequest(parent="tenants/default")
    events = (await admin.tasks.ListAuditEvents(request)).audit_events
    newest = {event.event_type: event for event in reversed(events)}
    assert newest["api_key.sign_in_code_created"].resource == "apiKeys/audited1"
    sign_in = newest["api_key.created"]
    assert sign_in.resource == answer.api_key.name and sign_in.details["parent"] == "apiKeys/audited1"
    assert sign_in.actor.id == "audited1"
    stored = str(await taskdb.rows("SELECT * FROM sign_in_codes")) + str(events)
    for secret in (code, answer.secret):
        assert secret.rpartition("_")[2] not in stored


@pytest.mark.parametrize("seconds", [0, -1, 901])
async def test_validity_of_a_code_is_bounded(tenant: Caller, seconds: int) -> None:
    with pytest.raises(errors.FieldInvalid, match="valid_for"):
        await code_of(tenant, valid_for=Duration(seconds=seconds))


async def test_runners_make_no_codes(taskdb: RunningTaskDb, admin: Caller) -> None:
    made = await make(admin, kind=api_key_pb2.PRINCIPAL_KIND_RUNNER)
    with pytest.raises(errors.PermissionDenied):
        await code_of(holder(taskdb, made.secret))
