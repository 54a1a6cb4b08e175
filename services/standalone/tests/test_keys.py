"""Development keys are made once per database and survive an interrupted first start."""

from pathlib import Path

import pytest

from taskyard_standalone.datadir import DataDirectory
from taskyard_standalone.errors import DataDirectoryError, ServiceError
from taskyard_standalone.keys import ensure_keys


class Maker:
    """Makes keys as taskdb does: a name can be used once."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.broken = ""

    async def __call__(self, kind: str, name: str) -> str:
        if kind == self.broken:
            raise ServiceError("the database is down")
        assert name not in self.made
        self.made.append(name)
        return f"ty_{name}_secret"


async def test_keys_are_kept_for_the_same_database_and_made_anew_for_another(tmp_path: Path) -> None:
    make = Maker()
    with DataDirectory(tmp_path / "data") as data:
        first = await ensure_keys(data, "1/1", make)
        assert await ensure_keys(data, "1/1", make) == first
        assert len(make.made) == 4
        other = await ensure_keys(data, "1/2", make)
        assert other.tenant != first.tenant
        assert data.keys.stat().st_mode & 0o777 == 0o600


async def test_a_start_that_failed_between_two_keys_can_be_repeated(tmp_path: Path) -> None:
    make = Maker()
    with DataDirectory(tmp_path / "data") as data:
        make.broken = "runner"
        with pytest.raises(ServiceError):
            await ensure_keys(data, "1/1", make)
        assert not data.keys.exists()
        make.broken = ""
        assert (await ensure_keys(data, "1/1", make)).runner.startswith("ty_uprunner")


async def test_a_damaged_key_file_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "data") as data:
        data.keys.write_text("tenant = ")
        with pytest.raises(DataDirectoryError, match=r"keys\.toml is damaged: remove it"):
            await ensure_keys(data, "1/1", Maker())
