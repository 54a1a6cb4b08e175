"""Keys, principals and the key cache."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from taskyard.errors import NotFound, StorageUnavailable, Unauthenticated
from taskyard_kit.auth import (
    Authenticator,
    Kind,
    Principal,
    current_principal,
    require_tenant,
    set_principal,
)
from taskyard_kit.keys import ApiKey


class Store:
    """A key store whose result each test sets."""

    def __init__(self, result: Principal | Exception | None) -> None:
        self.result = result
        self.call_count = 0

    async def verify(self, key: ApiKey) -> Principal | None:
        self.call_count += 1
        await asyncio.sleep(0)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


HEADER = f"Bearer {ApiKey.make().text}"
ADMIN = Principal(Kind.ADMIN, "k1")


def test_a_key_is_read_as_it_was_made_and_hides_its_secret() -> None:
    key = ApiKey.make()
    assert ApiKey.parse(key.text) == key
    assert key.secret not in repr(key)
    assert key.matches(key.digest)
    assert not ApiKey.make().matches(key.digest)
    assert len({ApiKey.make().text for _ in range(100)}) == 100


@pytest.mark.parametrize(
    "text", ["", "ty_", "ty_id_short", "xx_abcd_" + "s" * 43, "ty_AB.D_" + "s" * 43, "ty_a\n"]
)
def test_invalid_key_is_refused_without_echoing_it(text: str) -> None:
    with pytest.raises(ValueError, match=r"a key has the form ty_<id>_<secret>$"):
        ApiKey.parse(text)


async def test_verified_key_is_cached_for_its_ttl() -> None:
    store = Store(ADMIN)
    caching = Authenticator(store, timedelta(minutes=1))
    for _ in range(3):
        assert await caching.authenticate(HEADER) == ADMIN
    assert store.call_count == 1
    uncached = Authenticator(store, timedelta(0))
    for _ in range(3):
        assert await uncached.authenticate(HEADER) == ADMIN
    assert store.call_count == 4


async def test_refused_key_is_cached_too() -> None:
    store = Store(None)
    authenticator = Authenticator(store)
    for _ in range(3):
        with pytest.raises(Unauthenticated, match="unknown, expired or revoked"):
            await authenticator.authenticate(HEADER)
    assert store.call_count == 1


async def test_unavailable_key_store_is_called_again() -> None:
    store = Store(StorageUnavailable())
    authenticator = Authenticator(store)
    with pytest.raises(StorageUnavailable):
        await authenticator.authenticate(HEADER)
    store.result = ADMIN
    assert await authenticator.authenticate(HEADER) == ADMIN


async def test_cancelled_caller_does_not_cancel_a_shared_verification() -> None:
    authenticator = Authenticator(Store(ADMIN))
    first = asyncio.create_task(authenticator.authenticate(HEADER))
    second = asyncio.create_task(authenticator.authenticate(HEADER))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == ADMIN


async def test_key_cache_is_bounded() -> None:
    store = Store(ADMIN)
    authenticator = Authenticator(store, capacity=2)
    headers = [f"Bearer {ApiKey.make().text}" for _ in range(3)]
    for header in (*headers, headers[0]):
        await authenticator.authenticate(header)
    assert store.call_count == 4


@pytest.mark.parametrize("header", ["Basic dTpw", "Bearer", "ty_abcd_" + "s" * 43])
async def test_another_kind_of_header_is_refused(header: str) -> None:
    with pytest.raises(Unauthenticated):
        await Authenticator(Store(ADMIN)).authenticate(header)


@pytest.mark.parametrize(
    ("principal", "sees"),
    [
        (Principal(Kind.TENANT, "k", tenant="acme"), True),
        (Principal(Kind.TENANT, "k", tenant="rival"), False),
        (Principal(Kind.RUNNER, "k", tenants=frozenset({"acme"})), True),
        (Principal(Kind.RUNNER, "k", tenants=frozenset({"*"})), True),
        (Principal(Kind.RUNNER, "k"), False),
        (Principal(Kind.ADMIN, "k"), True),
        (Principal(Kind.SCHEDULER, "k"), True),
    ],
)
async def test_only_visible_tenants_exist(principal: Principal, sees: bool) -> None:
    set_principal(principal)
    if sees:
        require_tenant("acme")
    else:
        with pytest.raises(NotFound, match='task "tenants/acme/tasks/1"'):
            require_tenant("acme", "task", "tenants/acme/tasks/1")


async def test_there_is_no_principal_outside_of_a_call() -> None:
    with pytest.raises(Unauthenticated):
        current_principal()
