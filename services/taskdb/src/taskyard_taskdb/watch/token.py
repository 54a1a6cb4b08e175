"""Resume tokens: a position in one epoch of the change log, bound to the watch that issued it."""

import base64
import binascii
import struct
from dataclasses import dataclass
from datetime import UTC, datetime

from taskyard.errors import FieldViolation, ResumeTokenInvalid
from taskyard_taskdb.domain.token_seal import SEAL_BYTES, is_sealed, seal

_FORM = struct.Struct(">Bqqq")
_VERSION = 2
_SHOWN_LENGTH = 128


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """The stream has received every change up to and including `id`; `time` is the time of that change."""

    epoch: int
    id: int
    time: datetime

    def encode(self, query: str) -> str:
        """Return the token as text, bound to `query`."""
        micros = int(self.time.timestamp() * 1_000_000)
        body = _FORM.pack(_VERSION, self.epoch, self.id, micros)
        return base64.urlsafe_b64encode(body + seal(body, query)).decode().rstrip("=")


def decode(text: str, query: str) -> ResumeToken:
    """Return the token encoded in `text`; raises ResumeTokenInvalid if it is damaged or of another watch."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body, found = raw[:-SEAL_BYTES], raw[-SEAL_BYTES:]
        version, epoch, change_id, micros = _FORM.unpack(body)
        time = datetime.fromtimestamp(micros / 1_000_000, UTC)
    except (binascii.Error, struct.error, ValueError, OverflowError, OSError) as error:
        raise _invalid(text, "it is damaged; start over with snapshot") from error
    if version != _VERSION or not is_sealed(found, body, query):
        raise _invalid(text, "it belongs to another watch; use it with the request that made it")
    return ResumeToken(epoch, change_id, time)


def _invalid(text: str, problem: str) -> ResumeTokenInvalid:
    return ResumeTokenInvalid((FieldViolation("resume_token", f'"{text[:_SHOWN_LENGTH]}": {problem}'),))
