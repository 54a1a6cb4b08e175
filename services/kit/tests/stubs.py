"""Generates the stubs of kit_echo.proto, so that the kit's tests depend on no product service."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
CHECKOUT = TESTS.parents[2]


def generate(into: Path) -> None:
    """Write kit_echo_pb2.py and kit_echo_pb2_grpc.py into a directory."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "grpc_tools.protoc",
            f"-I{TESTS}",
            f"-I{CHECKOUT / 'third_party'}",
            f"--python_out={into}",
            f"--grpc_python_out={into}",
            "kit_echo.proto",
        ],
        check=True,
    )
