"""`taskyard-gateway serve`: the gateway as a process."""

from __future__ import annotations

import sys

from taskyard_gateway.server import serve
from taskyard_gateway.settings import GatewaySettings
from taskyard_kit.run import run


def main() -> None:
    """Run the service; `serve` is its only verb and may be left out."""
    arguments = sys.argv[1:]
    run(GatewaySettings, serve, arguments[1:] if arguments[:1] == ["serve"] else arguments)


if __name__ == "__main__":
    main()
