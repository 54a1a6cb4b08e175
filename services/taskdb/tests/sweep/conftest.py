"""Fixtures for tests of sweeps and jobs."""

import pytest

from services.taskdb.tests.conftest import RunningTaskDb
from taskyard_taskdb.housekeeping import make_jobs
from taskyard_taskdb.settings import JobOptions
from taskyard_taskdb.sweep.jobs import Job


@pytest.fixture
def jobs(quiet: RunningTaskDb) -> dict[str, Job]:
    """Every job, by its name."""
    return {job.name: job for job in make_jobs(quiet.pool, quiet.taskdb._after_commit, JobOptions())}
