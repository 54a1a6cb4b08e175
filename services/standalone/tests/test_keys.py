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
        self.broken = False

    async def __call__(self, suffix: str) -> dict[str, str]:
        assert suffix not in self.made
        self.made.append(suffix)
        if self.broken:
            raise ServiceError("the database is down")
        return {kind: f"ty_up{kind}{suffix}_secret" for kind in ("admin", "tenant", "scheduler", "runner")}


async def test_keys_are_kept_for_the_same_database_and_made_anew_for_another(tmp_path: Path) -> None:
    make = Maker()
    with DataDirectory(tmp_path / "data") as data:
        first = await ensure_keys(data, "1/1", make)
        assert await ensure_keys(data, "1/1", make) == first
        assert len(make.made) == 1
        other = await ensure_keys(data, "1/2", make)
        assert other.tenant != first.tenant
        assert data.keys.stat().st_mode & 0o777 == 0o600


async def test_a_start_that_failed_while_it_made_keys_can_be_repeated(tmp_path: Path) -> None:
    make = Maker()
    with DataDirectory(tmp_path / "data") as data:
        make.broken = True
        with pytest.raises(ServiceError):
            await ensure_keys(data, "1/1", make)
        assert not data.keys.exists()
        make.broken = False
        assert (await ensure_keys(data, "1/1", make)).runner.startswith("ty_uprunner")


async def test_a_damaged_key_file_is_a_one_line_error_with_the_remedy(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "data") as data:
        data.keys.write_text("tenant = ")
        with pytest.raises(DataDirectoryError, match=r"keys\.toml is damaged: remove it"):
            await ensure_keys(data, "1/1", Maker())
