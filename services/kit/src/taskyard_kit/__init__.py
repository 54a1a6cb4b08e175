"""One way to be a Taskyard service; import the submodules, each of which says what it owns.

The base needs grpcio, protobuf and the taskyard package only. The extra `server` adds what serving gRPC
takes (serve, interceptors, validation), the extra `telemetry` what exporting traces and metrics takes.
"""

import os

# gRPC's core reports every GOAWAY on stderr otherwise; it reads this when grpc is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
