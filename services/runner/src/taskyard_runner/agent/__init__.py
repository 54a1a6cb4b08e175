"""The gRPC side of the runner: leases, reports, logs and checkpoints; it may end at any moment without a loss."""
