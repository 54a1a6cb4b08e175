"""Asynchronous functions pass the table, sharing a host."""

from __future__ import annotations

from tests.executors.cases import ExecutorCases
from tests.executors.functions import Functions


class TestFunctionAsync(ExecutorCases):
    kind = Functions(".async")
