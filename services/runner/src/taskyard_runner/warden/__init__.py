"""The runner's main process: starts, limits, ends and reaps processes; standard library only."""
