"""Services composed of handlers: each RPC has exactly one."""

from __future__ import annotations

import pytest

from taskyard.v1 import api_key_service_pb2_grpc
from taskyard_taskdb.rpc.service import WiringError, compose, rpc_names

BASE = api_key_service_pb2_grpc.ApiKeyServiceServicer


class Creating:
    async def CreateApiKey(self, request: object, context: object) -> str:
        return "created"


class Rest:
    async def ListApiKeys(self, request: object, context: object) -> str:
        return "listed"

    async def WhoAmI(self, request: object, context: object) -> str:
        return "whose"

    async def RevokeApiKey(self, request: object, context: object) -> str:
        return "revoked"

    async def CreateSignInCode(self, request: object, context: object) -> str:
        return "coded"

    async def RedeemSignInCode(self, request: object, context: object) -> str:
        return "redeemed"


async def test_every_rpc_is_the_method_of_its_handler() -> None:
    servicer = compose(BASE, Creating(), Rest())
    assert rpc_names(BASE) == [
        "CreateApiKey",
        "ListApiKeys",
        "WhoAmI",
        "RevokeApiKey",
        "CreateSignInCode",
        "RedeemSignInCode",
    ]
    responses = [await getattr(servicer, name)(None, None) for name in rpc_names(BASE)]
    assert responses == ["created", "listed", "whose", "revoked", "coded", "redeemed"]


def test_rpc_without_a_handler_fails_at_startup() -> None:
    with pytest.raises(WiringError, match=r"ApiKeyServiceServicer\.CreateApiKey .* no handler"):
        compose(BASE, Rest())


def test_rpc_with_two_handlers_fails_at_startup() -> None:
    with pytest.raises(WiringError, match=r"CreateApiKey .* Creating and Creating"):
        compose(BASE, Creating(), Creating(), Rest())
