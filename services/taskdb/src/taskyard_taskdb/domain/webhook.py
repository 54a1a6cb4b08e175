"""Webhooks: how they are signed (Standard Webhooks) and when a call is repeated."""

import base64
import hashlib
import hmac
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random

FIRST_DELAY = timedelta(seconds=2)
LONGEST_DELAY = timedelta(minutes=10)
SECRET_BYTES = 32
_PREFIX = "whsec_"


def signatures(secrets: Iterable[bytes], call_id: str, time: datetime, body: bytes) -> str:
    """The header webhook-signature: one signature per secret, so that a receiver may check with either."""
    signed = f"{call_id}.{int(time.timestamp())}.".encode() + body
    made = (
        base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode() for secret in secrets
    )
    return " ".join(f"v1,{one}" for one in made)


def show_secret(secret: bytes) -> str:
    """The secret as receivers configure it."""
    return _PREFIX + base64.b64encode(secret).decode()


def delay(attempt: int, rng: Random) -> timedelta:
    """How long to wait after the `attempt`-th call has failed: doubling, half of it by chance."""
    doubled: int = 2 ** min(attempt - 1, 20)
    longest = min(FIRST_DELAY * doubled, LONGEST_DELAY)
    return longest / 2 + longest / 2 * rng.random()
