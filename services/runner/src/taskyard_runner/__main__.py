"""`taskyard-runner`: reads the settings and becomes the warden."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from taskyard_kit.settings import load_or_exit
from taskyard_runner.nearby import find_nearby, secret_files
from taskyard_runner.settings import MIB, RunnerSettings, agent_config
from taskyard_runner.warden.log import make_log
from taskyard_runner.warden.main import WardenConfig, WardenError, run
from taskyard_runner.warden.sandbox import SandboxSettings


def main() -> None:
    """Run until drained; exit code 0, 2 for bad settings, 1 for anything else."""
    nearby = find_nearby(sys.argv[1:], os.environ, Path.cwd())
    settings = load_or_exit(RunnerSettings, environ={**os.environ, **nearby})
    config = WardenConfig(
        data_dir=str(settings.data_dir.absolute()),
        log_limit_bytes=settings.log_limit_mb * MIB,
        drain_seconds=settings.drain_timeout.total_seconds(),
        use_cgroups=settings.cgroups,
        sandbox=SandboxSettings(
            settings.sandbox,
            settings.sandbox_user,
            str(settings.runs_dir.absolute()) if settings.runs_dir is not None else "",
            (*settings.hidden_files(), *secret_files(Path.cwd())),
        ),
        agent=agent_config(settings),
        # The key reaches the agent by their socket, so that its environment never holds it.
        agent_env={name: value for name, value in os.environ.items() if name != "TASKYARD_KEY"},
        log=make_log(settings.log_format, settings.log_level),
    )
    try:
        code = run(config)
    except WardenError as error:
        sys.stderr.write(f"taskyard-runner: {error}\n")
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
