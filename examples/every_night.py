"""Schedules: a task that is created by time, and what became of its instants."""

import time
from datetime import UTC, datetime, timedelta

from taskyard import SyncClient, command

with SyncClient() as client:
    script = 'echo "the instant is $TASKYARD_SCHEDULED_TIME"'
    client.schedules.create("every-second", command("sh", "-c", script), every=1, overlap="queue_latest")
    while (schedule := client.schedules.get("every-second")).fired_count < 2:
        time.sleep(0.2)
    last = client.wait(schedule.last_task, timeout=60)
    for line in client.logs(last):
        print(last.id, line.message)
    client.schedules.delete("every-second")

    client.schedules.create("every-night", command("true"), cron="30 2 * * *", time_zone="Europe/Berlin")
    for instant in client.schedules.preview("every-night", 3, start=datetime(2026, 10, 23, tzinfo=UTC)):
        print(instant.local_time)
    today = datetime.now(UTC)
    made = client.schedules.backfill("every-night", today - timedelta(days=3), today)
    print(len(made.tasks), "tasks of the last days")
    client.schedules.delete("every-night")
