"""Restarts are delayed, doubled and bounded; logs rotate; ports are claimed."""

import asyncio
import socket
from pathlib import Path

import pytest

from taskyard_standalone.errors import ServiceError, SettingError
from taskyard_standalone.logs import LogFile
from taskyard_standalone.ports import claim_port
from taskyard_standalone.settings import UpSettings
from taskyard_standalone.signals import StopRequests
from taskyard_standalone.supervision import RestartBudget


def test_each_restart_waits_twice_as_long_until_the_limit() -> None:
    budget = RestartBudget(limit=3, first_delay=1.0)
    assert [budget.delay(now) for now in (0.0, 1.0, 2.0, 3.0)] == [1.0, 2.0, 4.0, None]


def test_a_quiet_minute_restores_the_budget() -> None:
    budget = RestartBudget(limit=2, first_delay=1.0)
    assert [budget.delay(now) for now in (0.0, 1.0, 61.5)] == [1.0, 2.0, 1.0]


def test_a_log_keeps_three_generations_while_its_writer_goes_on(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "x.log")
    with open(log.open(), "w", buffering=1) as writer:
        for number in range(5):
            writer.write(f"line {number}\n")
            assert log.rotate(limit=5)
        writer.write("last\n")
        assert not log.rotate(limit=5)
    assert log.lines() == ["last"]
    kept = [(tmp_path / f"x.log.{number}").read_text() for number in (1, 2, 3)]
    assert kept == ["line 4\n", "line 3\n", "line 2\n"]
    assert not (tmp_path / "x.log.4").exists()


async def test_port_zero_is_a_free_port() -> None:
    port = await claim_port("127.0.0.1", 0, "--taskdb-port")
    socket.create_server(("127.0.0.1", port)).close()
    assert await claim_port("127.0.0.1", port, "--taskdb-port") == port


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        (UpSettings(host="192.0.2.1"), "--host 192.0.2.1 is not a loopback address"),
        (UpSettings(host="example.com"), "--host example.com is not a loopback address"),
        (UpSettings(taskdb_port=70000), "--taskdb-port 70000 is not a port"),
        (UpSettings(taskdb_port=7421), "both 7421: they must differ"),
    ],
)
def test_an_invalid_setting_is_named(settings: UpSettings, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        settings.check()


def test_a_missing_home_is_an_error_that_asks_for_data_dir() -> None:
    with pytest.raises(SettingError, match="no home for ~nosuchuser/x: set --data-dir"):
        UpSettings(data_dir=Path("~nosuchuser/x")).data_path()


def test_the_database_url_is_not_shown() -> None:
    assert "hunter2" not in repr(UpSettings(database_url="postgresql://u:hunter2@h/d"))


async def test_work_is_cancelled_by_the_first_request_and_hurried_by_the_second() -> None:
    requests = StopRequests()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(requests.unless_stopped(work()))
    await begun.wait()
    requests.request()
    assert await running is False
    assert not requests.hurry.is_set()
    requests.request()
    assert requests.hurry.is_set()


async def test_an_error_of_the_work_is_raised() -> None:
    async def work() -> None:
        raise ServiceError("broken")

    with pytest.raises(ServiceError):
        await StopRequests().unless_stopped(work())
