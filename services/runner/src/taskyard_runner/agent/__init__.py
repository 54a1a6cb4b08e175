"""The gRPC side of the runner: leases, reports, logs, checkpoints; it may end at any moment, without loss."""
