"""Containers pass the table under runc, on a root file system of the host."""

from __future__ import annotations

from tests.executors.cases import ExecutorCases
from tests.executors.containers import Containers


class TestContainer(ExecutorCases):
    kind = Containers("runc")
