"""The error of a service that cannot start."""

from __future__ import annotations


class StartupError(Exception):
    """Why a service cannot start, in one line that says what to do; the process ends with exit code 1."""
