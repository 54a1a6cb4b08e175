"""The triggers by which the chaos suite sees who writes as the leader."""

from __future__ import annotations

import psycopg

from tests.chaos.leadership import QUEUED, LeaderWrite, install, read_writes

TERM = "UPDATE coordinator_state SET epoch = epoch + 1, expires_at = now() WHERE key = 'leader_lock'"
WRITE = (
    "INSERT INTO changes (time, version, event, actor_type, phase, previous_phase, tenant_id, resource_id,"
    " actor_id) VALUES (now(), 2, %s, 3, 1, 1, 'default', %s, '')"
)


def test_each_write_of_a_leader_is_noted_with_the_leader_of_the_newest_term(database_url: str) -> None:
    install(database_url)
    with (
        psycopg.connect(database_url, autocommit=True, application_name="taskdb0") as former,
        psycopg.connect(database_url, autocommit=True, application_name="taskdb1") as latter,
    ):
        former.execute(TERM)
        former.execute(WRITE, (QUEUED, "a"))
        latter.execute(TERM)
        latter.execute(WRITE, (QUEUED, "b"))
        former.execute(WRITE, (QUEUED, "c"))
        former.execute(WRITE, (QUEUED + 1, "d"))
        assert read_writes(latter) == [
            LeaderWrite("a", "taskdb0", "taskdb0"),
            LeaderWrite("b", "taskdb1", "taskdb1"),
            LeaderWrite("c", "taskdb0", "taskdb1"),
        ]
