"""API keys, `ty_<id>_<secret>`: creation, parsing and comparison; a store keeps id and digest only."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field

_FORM = re.compile(r"ty_([a-z0-9]{4,32})_([A-Za-z0-9_-]{22,128})")


@dataclass(frozen=True)
class ApiKey:
    """A key in the clear; its repr hides the secret."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def make(cls) -> ApiKey:
        """A new key with a secret of 256 random bits, which is why a plain hash of it is enough."""
        return cls(secrets.token_hex(8), secrets.token_hex(32))

    @classmethod
    def parse(cls, text: str) -> ApiKey:
        """Parses `ty_<id>_<secret>`; raises ValueError for anything else, without echoing it."""
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError("a key has the form ty_<id>_<secret>")
        return cls(match[1], match[2])

    @property
    def text(self) -> str:
        """The whole key as it is sent."""
        return f"ty_{self.id}_{self.secret}"

    @property
    def digest(self) -> bytes:
        """The hash of the secret that a store keeps."""
        return hashlib.sha256(self.secret.encode()).digest()

    def matches(self, digest: bytes) -> bool:
        """Whether the secret is the one stored as `digest`, in constant time."""
        return hmac.compare_digest(self.digest, digest)
