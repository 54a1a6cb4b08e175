"""The agent's runs, by lease key and by name."""

from __future__ import annotations

from collections.abc import Iterator

from taskyard_runner.agent.leases import RunKey
from taskyard_runner.agent.run import AgentRun


class RunTable:
    """Every run from its assignment until its report is acknowledged and its logs are stored."""

    def __init__(self) -> None:
        self._by_key: dict[RunKey, AgentRun] = {}
        self._by_name: dict[str, AgentRun] = {}

    def add(self, run: AgentRun) -> None:
        self._by_key[run.key] = self._by_name[run.name] = run

    def remove(self, run: AgentRun) -> bool:
        """Whether the run was there."""
        if self._by_key.pop(run.key, None) is None:
            return False
        del self._by_name[run.name]
        return True

    def get(self, key: RunKey) -> AgentRun | None:
        return self._by_key.get(key)

    def by_name(self, name: str) -> AgentRun | None:
        return self._by_name.get(name)

    def find_live(self, name: str) -> AgentRun | None:
        """The run of this name unless it has ended."""
        run = self._by_name.get(name)
        return run if run is not None and not run.ended else None

    def __iter__(self) -> Iterator[AgentRun]:
        return iter(self._by_key.values())

    def live(self) -> Iterator[AgentRun]:
        """Runs that have not ended."""
        yield from [run for run in self._by_key.values() if not run.ended]
