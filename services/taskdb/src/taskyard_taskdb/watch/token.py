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
# Of a token within a snapshot, followed by the tenant and id of the last task sent.
_SNAPSHOT_VERSION = 3
_SEPARATOR = b"/"
_SHOWN_LENGTH = 128


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """The stream has received every change up to and including `id`; `time` is the time of that change.

    Within a snapshot it has also received the tasks up to `snapshot_after` in the order of their keys; the
    rest of the snapshot comes before the changes.
    """

    epoch: int
    id: int
    time: datetime
    snapshot_after: tuple[str, str] | None = None

    def encode(self, query: str) -> str:
        """Return the token as text, bound to `query`."""
        micros = int(self.time.timestamp() * 1_000_000)
        version, key = _VERSION, b""
        if self.snapshot_after is not None:
            version, key = _SNAPSHOT_VERSION, "/".join(self.snapshot_after).encode()
        body = _FORM.pack(version, self.epoch, self.id, micros) + key
        return base64.urlsafe_b64encode(body + seal(body, query)).decode().rstrip("=")


def decode(text: str, query: str) -> ResumeToken:
    """Return the token encoded in `text`; raises ResumeTokenInvalid if it is damaged or of another watch."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        body, found = raw[:-SEAL_BYTES], raw[-SEAL_BYTES:]
        version, epoch, change_id, micros = _FORM.unpack_from(body)
        time = datetime.fromtimestamp(micros / 1_000_000, UTC)
    except (binascii.Error, struct.error, ValueError, OverflowError, OSError) as error:
        raise _invalid(text, "it is damaged; start over with snapshot") from error
    if version not in (_VERSION, _SNAPSHOT_VERSION) or not is_sealed(found, body, query):
        raise _invalid(text, "it belongs to another watch; use it with the request that made it")
    if version == _VERSION:
        return ResumeToken(epoch, change_id, time)
    tenant_id, _, task_id = body[_FORM.size :].partition(_SEPARATOR)
    return ResumeToken(epoch, change_id, time, (tenant_id.decode(), task_id.decode()))


def _invalid(text: str, problem: str) -> ResumeTokenInvalid:
    return ResumeTokenInvalid((FieldViolation("resume_token", f'"{text[:_SHOWN_LENGTH]}": {problem}'),))
