"""A link that signs the developer's browser in to the console, once."""

from __future__ import annotations

import asyncio
import json
import tomllib
import urllib.request
from pathlib import Path

SECONDS = 10.0


async def console_link(gateway: str, context_file: Path) -> str | None:
    """The link, or None if the gateway did not make one; `taskyard open` makes another at any time."""
    try:
        return await asyncio.to_thread(_ask, gateway, context_file)
    except (OSError, ValueError, KeyError):
        return None


def _ask(gateway: str, context_file: Path) -> str:
    key = tomllib.loads(context_file.read_text())["key"]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{gateway}/v1/signInCodes", b"{}", headers, method="POST")
    # Without the environment's proxies: this is a service of this very process.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=SECONDS) as response:
        return f"http://{gateway}/#/?code={json.load(response)['code']}"
