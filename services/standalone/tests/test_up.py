"""`taskyard up` starts, supervises and stops every service, for every user and after every kill."""

import contextlib
import os
import re
import signal
import socket
import stat
from pathlib import Path

import pytest

from services.standalone.tests.running import Up, UpFactory, python_for, wait_gone
from taskyard_standalone.account import Account

NAMELESS = Account(54321, 54321)
NAMES = ["taskdb", "scheduler", "gateway", "runner"]


def assert_nothing_is_left(up: Up, children: dict[int, str]) -> None:
    up.process.wait(40)
    for pid in children:
        wait_gone(pid)


def test_the_first_up_serves_and_stops_cleanly_on_ctrl_c_and_keeps_its_data(up_as: UpFactory) -> None:
    new = str(up_as.base / "new")
    up = up_as(data_dir=new).ready()
    up.sql("CREATE TABLE note AS SELECT 'kept' AS text")
    children = up.children()
    assert len(children) > len(NAMES)
    up.send(signal.SIGINT)
    assert up.answer().code == 0
    assert_nothing_is_left(up, children)
    assert [name for name, _ in up_as.notes("stopped")] == ["runner", "gateway", "scheduler", "taskdb"]

    again = up_as(data_dir=new).ready()
    assert again.sql("SELECT text FROM note") == [("kept",)]
    again.send(signal.SIGTERM)
    assert again.answer().code == 0


def test_up_comes_back_at_once_after_the_supervisor_was_killed(up_as: UpFactory) -> None:
    up = up_as().ready()
    up.sql("CREATE TABLE note AS SELECT 'kept' AS text")
    children = up.children()
    up.send(signal.SIGKILL)
    up.process.wait()
    # The old server may still be shutting down; the new one waits for it.
    assert up_as().ready().sql("SELECT text FROM note") == [("kept",)]
    assert_nothing_is_left(up, children)


def test_up_restarts_a_killed_postmaster_and_comes_back_after_everything_was_killed(up_as: UpFactory) -> None:
    up = up_as().ready()
    up.sql("CREATE TABLE note AS SELECT 'kept' AS text")
    killed = up.postmaster()
    os.kill(killed, signal.SIGKILL)
    up.until("postgresql is back")
    assert up.postmaster() != killed
    assert up.sql("SELECT text FROM note") == [("kept",)]

    children = up.children()
    # Stopped first, so that it cannot see its children die.
    up.send(signal.SIGSTOP)
    for pid in [*children, up.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert_nothing_is_left(up, children)
    assert up_as().ready().sql("SELECT text FROM note") == [("kept",)]


def test_a_user_without_a_name_gets_an_error_with_the_remedy(public_directory: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become a user without a name")
    os.chown(public_directory, NAMELESS.uid, NAMELESS.gid)
    answer = UpFactory(public_directory, NAMELESS, python_for(NAMELESS))().answer()
    assert answer.code == 1
    assert "user id 54321 has no name" in answer.complaints[0]


def test_up_restarts_killed_services(up: UpFactory, empty_database_url: str) -> None:
    running = up(database_url=empty_database_url).ready()
    for name in NAMES:
        pid = dict(up.notes("started"))[name]
        os.kill(pid, signal.SIGKILL)
        assert "signal SIGKILL" in running.until(f"{name} ended unexpectedly")
        running.until(f"{name} is back")
        assert dict(up.notes("started"))[name] != pid
    running.send(signal.SIGTERM)
    assert running.answer().code == 0


def test_a_start_that_takes_long_is_reported_while_it_lasts(up: UpFactory, empty_database_url: str) -> None:
    slow = up.fault("runner.waits")
    running = up(database_url=empty_database_url)
    assert re.search(r"starting \(\d+ s\)$", running.until("  runner      starting"))
    slow.unlink()
    running.ready()
    running.send(signal.SIGTERM)
    assert running.answer().code == 0


def test_a_service_that_keeps_failing_stops_up_with_a_one_line_error(
    up: UpFactory, empty_database_url: str
) -> None:
    running = up(database_url=empty_database_url, restart_limit=3).ready()
    children = running.children()
    up.fault("scheduler.crash")
    os.kill(dict(up.notes("started"))["scheduler"], signal.SIGKILL)
    answer = running.answer()
    assert answer.code == 1
    (line,) = answer.complaints
    assert "scheduler keeps ending, 3 restarts did not help: " in line
    assert "taskyard-scheduler: cannot go on" in line
    assert_nothing_is_left(running, children)


def test_a_service_that_cannot_start_is_a_one_line_error_with_its_reason(
    up: UpFactory, empty_database_url: str
) -> None:
    up.fault("runner.crash")
    answer = up(database_url=empty_database_url).answer()
    assert answer.code == 1
    (line,) = answer.complaints
    assert "runner ended with exit code 1: taskyard-runner: cannot go on" in line
    # The gateway starts beside the runner, and may have come as far as to note its end.
    stopped = [name for name, _ in up.notes("stopped") if name != "gateway"]
    assert stopped == ["scheduler", "taskdb"]


def test_up_restarts_parts_that_are_killed_while_they_start(up: UpFactory, empty_database_url: str) -> None:
    for name in NAMES:
        up.fault(f"{name}.killed")
    running = up(database_url=empty_database_url).ready()
    for name in NAMES:
        ended = next(line for line in running.lines if f"{name} ended unexpectedly" in line)
        assert "signal SIGKILL" in ended
        assert any(f"{name} is back" in line for line in running.lines)
    running.send(signal.SIGTERM)
    assert running.answer().code == 0


def test_up_repeats_a_preparation_that_was_killed(up: UpFactory, empty_database_url: str) -> None:
    up.fault("taskdb.migrate-killed")
    up.fault("taskdb.keys-killed")
    running = up(database_url=empty_database_url).ready()
    running.send(signal.SIGTERM)
    assert running.answer().code == 0


def test_up_restarts_a_part_that_is_killed_while_a_later_one_starts(
    up: UpFactory, empty_database_url: str
) -> None:
    waits = up.fault("runner.waits")
    running = up(database_url=empty_database_url)
    running.until("scheduler ")
    os.kill(dict(up.notes("started"))["taskdb"], signal.SIGKILL)
    running.until("taskdb is back")
    waits.unlink()
    running.ready().send(signal.SIGTERM)
    assert running.answer().code == 0


def test_a_failed_migration_is_a_one_line_error_with_its_reason(
    up: UpFactory, empty_database_url: str
) -> None:
    up.fault("taskdb.migrate")
    answer = up(database_url=empty_database_url).answer()
    assert answer.code == 1
    assert answer.complaints == [
        "taskyard up: the database could not be migrated: taskyard-taskdb: the schema is newer than this"
        " program: install the newer one"
    ]


def test_a_second_signal_hurries_a_service_that_does_not_drain(
    up: UpFactory, empty_database_url: str
) -> None:
    up.fault("taskdb.deaf")
    running = up(database_url=empty_database_url).ready()
    children = running.children()
    running.send(signal.SIGINT)
    running.until("scheduler stopped")
    running.send(signal.SIGINT)
    # Without the second signal the service has 15 s to drain.
    assert running.process.wait(10) == 0
    assert_nothing_is_left(running, children)


def test_a_signal_during_startup_stops_up_cleanly(up: UpFactory) -> None:
    new = str(up.base / "new")
    running = up(data_dir=new)
    running.until("Starting")
    running.send(signal.SIGTERM)
    answer = running.answer()
    assert answer.code == 0
    assert answer.complaints == []
    assert up(data_dir=new).ready().sql("SELECT 1") == [(1,)]


def test_a_second_up_on_the_same_directory_is_refused(up: UpFactory, empty_database_url: str) -> None:
    first = up(database_url=empty_database_url).ready()
    answer = up(database_url=empty_database_url).answer()
    assert answer.code == 1
    assert answer.complaints == [
        f"taskyard up: another taskyard up (pid {first.pid}) is using {up.data}:"
        " stop it first or choose another --data-dir"
    ]
    assert first.process.poll() is None


def test_a_port_in_use_is_a_one_line_error_with_the_remedy(up: UpFactory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = up(scheduler_port=port).answer()
    assert answer.code == 1
    assert answer.complaints == [
        f"taskyard up: port {port} on 127.0.0.1 is in use: stop the program that listens there or choose"
        " another port with --scheduler-port (0 = any free one)"
    ]


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://root:hunter2@localhost/x", "must have the form postgresql://"),
        ("postgresql://u:hunter2@localhost/x?nonsense=1", "is not a valid URL"),
        (
            "postgresql://u:hunter2@127.0.0.1:1/x",
            "cannot use the database x at 127.0.0.1:1: Connection refused",
        ),
    ],
)
def test_an_unusable_database_is_a_one_line_error_without_its_password(
    up: UpFactory, url: str, reason: str
) -> None:
    answer = up(database_url=url).answer()
    assert answer.code == 1
    (line,) = answer.complaints
    assert reason in line
    assert "hunter2" not in line


def test_up_refuses_to_serve_the_network_without_tls(up: UpFactory) -> None:
    answer = up(host="0.0.0.0").answer()
    assert answer.code == 1
    assert "--host 0.0.0.0 is not a loopback address" in answer.complaints[0]


def test_the_context_file_is_private_and_secrets_stay_off_command_lines(up: UpFactory) -> None:
    running = up().ready()
    assert stat.S_IMODE((up.data / "context.toml").stat().st_mode) == 0o600
    context = running.context()
    assert context["tenant"] == "default"
    for name in ("address", "scheduler"):
        host, _, port = context[name].partition(":")
        socket.create_connection((host, int(port)), timeout=5).close()

    secrets = set(re.findall("ty_[a-z0-9]+_secret", (up.data / "keys.toml").read_text()))
    assert len(secrets) == 4
    assert {context["key"], context["admin_key"]} < secrets
    for line in running.children().values():
        assert not any(secret in line for secret in secrets)
