"""Short names made of long ones."""

from __future__ import annotations

# hashlib would load OpenSSL, 3.4 MiB that an idle warden does not need.
from _blake2 import blake2b


def digest(text: str) -> str:
    """The first twelve hexadecimal digits of the text's hash."""
    return blake2b(text.encode(), digest_size=6).hexdigest()
