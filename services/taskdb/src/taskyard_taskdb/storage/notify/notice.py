"""The notice of a commit: what a transaction changed, for everybody who waits for such a change."""

from __future__ import annotations

from dataclasses import dataclass, field

from taskyard_taskdb.storage.claim.lanes import Appended, LaneKey, merge_appended

TaskKey = tuple[str, str]


@dataclass(slots=True)
class CommitNotice:
    """What changed; `everything` asks subscribers for a full read."""

    everything: bool = False
    # Lanes to read again.
    lanes: set[LaneKey] = field(default_factory=set)
    # Lanes that gained tasks: the notice carries all that a subscriber needs, so nothing is read.
    appended: dict[LaneKey, Appended] = field(default_factory=dict)
    # Lanes that lost tasks to a claim: read again without hurry.
    shrunk: set[LaneKey] = field(default_factory=set)
    # Tasks whose holder must act: a cancel or pause is requested, or the lease was revoked.
    holders: set[TaskKey] = field(default_factory=set)
    # Runners whose drain, labels or deletion changed.
    runners: set[str] = field(default_factory=set)
    # Tenants whose use of their limits changed.
    tenants: set[str] = field(default_factory=set)
    # Tenants whose settings, limits or task types changed.
    settings: set[str] = field(default_factory=set)
    # Tenants with the seconds that their ended runs took; for this process only.
    used: list[tuple[str, float]] = field(default_factory=list)
    # Something else was committed: idle loops of other replicas look again.
    changed: bool = False

    def __bool__(self) -> bool:
        return self.changed or bool(self.used) or self.is_for_subscribers()

    def is_for_subscribers(self) -> bool:
        """Whether a subscriber has more to learn than that something was committed."""
        fields = (
            self.lanes,
            self.appended,
            self.shrunk,
            self.holders,
            self.runners,
            self.tenants,
            self.settings,
        )
        return self.everything or any(fields)

    @classmethod
    def of_settings(cls, tenant_id: str) -> CommitNotice:
        """Settings, limits or task types of a tenant changed."""
        return cls(tenants={tenant_id}, settings={tenant_id})

    def add(self, other: CommitNotice) -> None:
        """Merge another notice into this one."""
        self.everything |= other.everything
        self.changed |= other.changed
        self.lanes |= other.lanes
        merge_appended(self.appended, other.appended.items())
        self.shrunk |= other.shrunk
        self.holders |= other.holders
        self.runners |= other.runners
        self.tenants |= other.tenants
        self.settings |= other.settings
        self.used += other.used
