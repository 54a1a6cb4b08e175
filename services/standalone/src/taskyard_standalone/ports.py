"""TCP ports for the services: the wanted one if it is free, or any free one."""

import asyncio
import errno
import socket
import time

from taskyard_standalone.errors import SettingError

_PATIENCE_SECONDS = 2.0


async def claim_port(host: str, port: int, setting: str) -> int:
    """The port to listen on, `port` or, for 0, a free one; raises SettingError if it is taken.

    Waits a moment for a taken port: after a killed supervisor its children are still ending.
    """
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _bindable(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise SettingError(f"cannot listen on {host}:{port} ({setting}): {error.strerror}") from error
            if time.monotonic() > give_up:
                raise SettingError(
                    f"port {port} on {host} is in use: stop the program that listens there or choose another"
                    f" port with {setting} (0 = any free one)"
                ) from None
        await asyncio.sleep(0.05)


def _bindable(host: str, port: int) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # Connections that linger from an earlier run do not block a port; a listener does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])
