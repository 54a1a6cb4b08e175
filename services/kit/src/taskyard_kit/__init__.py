"""The shared parts of every Taskyard service; import the submodules, each documents what it owns.

The base needs only grpcio, protobuf and the taskyard package. The extra `server` adds the dependencies of
serving gRPC (serve, interceptors, validation), the extra `telemetry` those of exporting traces and metrics.
"""

import os

# Otherwise gRPC's core prints every GOAWAY on stderr; it reads this when grpc is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
