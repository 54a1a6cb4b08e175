"""The error of a service that cannot start."""

from __future__ import annotations


class StartupError(Exception):
    """Why a service cannot start, in one line that names the remedy; the process exits with code 1."""
