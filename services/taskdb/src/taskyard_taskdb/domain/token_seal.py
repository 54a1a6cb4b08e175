"""The seal of page and resume tokens: a MAC with a key of the database, which no caller has."""

import hmac
import secrets
from hashlib import blake2b

SEAL_BYTES = 16
KEY_BYTES = 32


class _Sealer:
    """The key of this process. All replicas of a database load the same one before they serve."""

    key = secrets.token_bytes(KEY_BYTES)


def use_key(key: bytes) -> None:
    """Seal and check with this key from now on."""
    _Sealer.key = key


def seal(body: bytes, query: str) -> bytes:
    """The seal of a token's body, bound to the query that it continues."""
    return blake2b(query.encode() + b"\0" + body, key=_Sealer.key, digest_size=SEAL_BYTES).digest()


def is_sealed(found: bytes, body: bytes, query: str) -> bool:
    """Whether this is the seal of the body for the query."""
    return hmac.compare_digest(found, seal(body, query))
