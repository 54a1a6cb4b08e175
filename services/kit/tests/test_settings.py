"""Settings: sources of values, validation and error messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskyard_kit.settings import Problem, Settings, SettingsError, load, setting
from taskyard_kit.values import Secret, format_duration, parse_duration


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Full(Settings):
    """One setting of each type."""

    service = "full"
    about = "Everything."

    name: str = setting("n", help="a name")
    count: int = setting(3, min=1, max=9, help="a count")
    ratio: float = setting(0.5, help="a ratio, like 50%")
    verbose: bool = setting(False, help="talk")
    wait: timedelta = setting(timedelta(seconds=30), min=timedelta(seconds=1), help="a time")
    folder: Path = setting(Path("/tmp"), help="a folder")
    optional: Path | None = setting(None, help="perhaps a folder")
    mode: Literal["fast", "slow"] = setting("fast", help="a mode")
    colour: Colour = setting(Colour.RED, help="a colour")
    tags: tuple[str, ...] = setting((), help="tags")
    secret: Secret = setting(Secret(), help="a secret")
    database_url: str = setting("", env="TASKYARD_DATABASE_URL", help="a database")

    def check(self) -> Iterator[Problem]:
        yield from super().check()
        if self.mode == "slow" and self.verbose:
            yield Problem("verbose", "true", "must be false while mode is slow")


class Needy(Settings):
    service = "needy"
    key: Secret = setting(help="a key")
    address: str = setting(help="an address")


def problems(*argv: str, **environ: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(Full, argv, environ)
    return str(caught.value).splitlines()


def test_a_flag_wins_over_the_environment_and_that_over_the_default() -> None:
    assert load(Full, [], {}).count == 3
    assert load(Full, [], {"TASKYARD_FULL_COUNT": "4"}).count == 4
    assert load(Full, ["--count", "5"], {"TASKYARD_FULL_COUNT": "4"}).count == 5


def test_every_type_is_read_from_text() -> None:
    flags = [
        *("--name=x", "--ratio", "0.25", "--verbose", "--wait=1m30s", "--folder", "/a", "--optional=/b"),
        *("--colour", "blue", "--tags", "a,b", "--tags=c", "--secret=s", "--mode=fast"),
    ]
    found = load(Full, flags, {"TASKYARD_DATABASE_URL": "postgresql://h/d"})
    assert (found.name, found.ratio, found.verbose, found.wait) == ("x", 0.25, True, timedelta(seconds=90))
    assert (found.folder, found.optional, found.colour) == (Path("/a"), Path("/b"), Colour.BLUE)
    assert (found.tags, found.secret.reveal(), found.mode) == (("a", "b", "c"), "s", "fast")
    assert found.database_url == "postgresql://h/d"


def test_a_boolean_can_be_switched_off_by_flag() -> None:
    assert load(Full, ["--no-verbose"], {"TASKYARD_FULL_VERBOSE": "yes"}).verbose is False


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(Full, [], {}).count = 4  # type: ignore[misc]


def test_all_problems_are_reported_at_once_with_setting_value_and_remedy() -> None:
    found = problems("--count=12", "--wait", "soon", "--mode=medium", TASKYARD_FULL_RATIO="half")
    assert found == [
        "count = '12' (from --count): must be at most 9",
        "ratio = 'half' (from TASKYARD_FULL_RATIO): must be a number",
        "wait = 'soon' (from --wait): must be a duration like 30s, 5m, 1h30m or 250ms",
        "mode = 'medium' (from --mode): must be one of fast, slow",
    ]


def test_conflicting_settings_are_reported() -> None:
    assert problems("--mode=slow", "--verbose") == ["verbose = 'true': must be false while mode is slow"]


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--cuont=1", "unknown flag --cuont; did you mean --count?"),
        ("--zzzzzzzz", "unknown flag --zzzzzzzz; see --help"),
        ("word", "unexpected argument 'word'; settings are flags, see --help"),
        ("--count", "argument --count: expected one argument; see --help"),
    ],
)
def test_an_unknown_flag_names_the_nearest(flag: str, problem: str) -> None:
    assert problems(flag) == [problem]


def test_an_unknown_variable_of_this_service_names_the_nearest_and_others_are_ignored() -> None:
    found = problems(TASKYARD_FULL_CUONT="1", TASKYARD_OTHER_X="1", PATH="/bin")
    assert found == [
        "unknown environment variable TASKYARD_FULL_CUONT; did you mean TASKYARD_FULL_COUNT?",
    ]


def test_missing_required_setting_names_its_flag_and_variable() -> None:
    with pytest.raises(SettingsError) as caught:
        load(Needy, [], {})
    assert str(caught.value).splitlines() == [
        "key is required: set --key or TASKYARD_NEEDY_KEY",
        "address is required: set --address or TASKYARD_NEEDY_ADDRESS",
    ]


def test_print_config_shows_values_and_sources_and_hides_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    environ = {
        "TASKYARD_FULL_SECRET": "canary",
        "TASKYARD_DATABASE_URL": "postgresql://me:canary@host:5432/db",
    }
    with pytest.raises(SystemExit) as stopped:
        load(Full, ["--print-config", "--count=4"], environ)
    out = capsys.readouterr().out
    assert stopped.value.code == 0
    assert "canary" not in out
    lines = {line.split(" = ")[0]: line for line in out.splitlines()}
    assert lines["count"].startswith("count = 4 ") and lines["count"].endswith("# --count")
    assert lines["secret"].startswith("secret = ********")
    assert "postgresql://me:********@host:5432/db" in lines["database_url"]
    assert lines["wait"].startswith("wait = 30s ") and lines["wait"].endswith("# default")


def test_a_bad_secret_is_not_repeated() -> None:
    assert problems("--secret=file:/no/such/canary")[0].startswith(
        "secret (from --secret): must be a secret, or"
    )
    assert "canary" not in str(problems("--count=x", "--secret=canary"))


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ty_x_y\n")
    found = load(Full, [], {"TASKYARD_FULL_SECRET": f"file:{tmp_path}/key"})
    assert found.secret.reveal() == "ty_x_y"
    assert "ty_x_y" not in f"{found!r} {found.secret}"


def test_help_names_each_flag_with_default_and_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        load(Full, ["--help"], {})
    out = " ".join(capsys.readouterr().out.split())
    assert "--wait DURATION a time [default 30s; TASKYARD_FULL_WAIT]" in out
    assert "a ratio, like 50% [default 0.5; TASKYARD_FULL_RATIO]" in out


@given(st.integers(min_value=0, max_value=10**10))
def test_a_duration_shown_is_the_duration_read(milliseconds: int) -> None:
    value = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(value)) == value
