"""Over kills of the leader and of PostgreSQL every due instant of a schedule has exactly one event."""

from __future__ import annotations

import os

import pytest

from tests.chaos.schedule_kills import run
from tests.harness.replication import needs_replication, server_folder

KILLS = int(os.environ.get("TASKYARD_SCHEDULE_KILLS", "5"))


@needs_replication
@pytest.mark.timeout(300 + 20 * KILLS)
async def test_every_instant_has_one_event_over_kills() -> None:
    with server_folder("taskyard-schedules-") as folder:
        outcome = await run(KILLS, 15, 1, folder)
    assert not outcome.problems, "\n".join(outcome.problems)
    assert outcome.counts["kills of PostgreSQL"] >= 1
    assert outcome.counts["fired"] and outcome.counts["missed"]
