"""What a tenant may use: the tiers' numbers, and a tenant's own where it has some."""

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from taskyard.errors import BatchTooLarge


@dataclass(frozen=True, slots=True)
class QuotaDecision:
    """How many of some new tasks are admitted, and whether the rate refuses the next one, or the queue."""

    admitted: int
    by_rate: bool


class Tier(IntEnum):
    """Service tiers (TenantTier)."""

    FREE = 1
    STANDARD = 2
    PREMIUM = 3
    ENTERPRISE = 4


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits in force; 0 is unlimited. The weight is never 0."""

    max_concurrent_tasks: int
    max_queue_depth: int
    rate_limit_per_sec: int
    rate_burst: int
    weight: int
    max_storage_bytes: int = 0

    @property
    def counted(self) -> bool:
        """Whether the tenant needs counters at all."""
        return bool(self.max_concurrent_tasks or self.max_queue_depth or self.rate_limit_per_sec)

    def claimable(self, leased: int) -> int:
        """How many more tasks may be claimed while `leased` are; -1 is unlimited."""
        return max(0, self.max_concurrent_tasks - leased) if self.max_concurrent_tasks else -1

    def room(self, pending: int) -> int:
        """How many more tasks may wait while `pending` do; -1 is unlimited."""
        return max(0, self.max_queue_depth - pending) if self.max_queue_depth else -1

    def admit(self, pending: int, tokens: float, count: int) -> QuotaDecision:
        """How many of `count` new tasks may wait, while `pending` do and the bucket holds `tokens`."""
        room = count if self.max_queue_depth == 0 else self.room(pending)
        rate = count if self.rate_limit_per_sec == 0 else int(tokens)
        return QuotaDecision(max(0, min(count, room, rate)), rate < room)

    def refilled(self, tokens: float, passed: timedelta) -> float:
        """What a bucket holds after that time; a burst of 0 lets it grow without end."""
        full = tokens + self.rate_limit_per_sec * max(0.0, passed.total_seconds())
        return min(full, float(self.rate_burst)) if self.rate_burst else full

    def wait_for(self, tokens: float, count: int) -> timedelta:
        """How long until a bucket that holds `tokens` holds `count`."""
        missing = max(0.0, count - tokens)
        return (
            timedelta(seconds=missing / self.rate_limit_per_sec) if self.rate_limit_per_sec else timedelta(0)
        )

    def check_batch(self, size: int, field: str = "requests") -> None:
        """Raises BatchTooLarge for a batch that the bucket could never admit."""
        if self.rate_limit_per_sec and self.rate_burst and size > self.rate_burst:
            raise BatchTooLarge.sized(field, size, self.rate_burst, "tasks")


TIERS = {
    Tier.FREE: Quota(10, 50, 1, 5, 1),
    Tier.STANDARD: Quota(100, 500, 10, 50, 10),
    Tier.PREMIUM: Quota(500, 2000, 50, 200, 50),
    Tier.ENTERPRISE: Quota(2000, 10000, 200, 1000, 100),
}


@dataclass(frozen=True, slots=True)
class QuotaOverrides:
    """A tenant's own numbers; None takes the tier's, 0 is unlimited."""

    max_concurrent_tasks: int | None = None
    max_queue_depth: int | None = None
    rate_limit_per_sec: int | None = None
    rate_burst: int | None = None
    weight: int | None = None
    max_storage_bytes: int | None = None


NO_OVERRIDES = QuotaOverrides()


def effective(tier: Tier, own: QuotaOverrides) -> Quota:
    """The limits in force: the tier's, with the tenant's own where it has some."""
    base = TIERS[tier]
    return Quota(
        base.max_concurrent_tasks if own.max_concurrent_tasks is None else own.max_concurrent_tasks,
        base.max_queue_depth if own.max_queue_depth is None else own.max_queue_depth,
        base.rate_limit_per_sec if own.rate_limit_per_sec is None else own.rate_limit_per_sec,
        base.rate_burst if own.rate_burst is None else own.rate_burst,
        base.weight if own.weight is None else own.weight,
        base.max_storage_bytes if own.max_storage_bytes is None else own.max_storage_bytes,
    )
