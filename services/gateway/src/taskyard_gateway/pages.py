"""The gateway's own pages: the OpenAPI document, and a reference page made of it that needs no network."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cache
from importlib import resources

from starlette.responses import Response

from taskyard_gateway.answers import JSON

_PAGES = {"/openapi.json": ("openapi.json", JSON), "/docs": ("docs.html", "text/html")}
# The page is complete in itself: nothing is fetched, and no script runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def find(path: str) -> Awaitable[Response] | None:
    """The page of this path, if there is one."""
    return _page(path) if path == "/" or path in _PAGES else None


async def _page(path: str) -> Response:
    if path == "/":
        return Response(status_code=307, headers={"location": "/docs"})
    name, media_type = _PAGES[path]
    headers = {"content-security-policy": _POLICY, "cache-control": "no-cache"}
    return Response(_read(name), 200, headers, media_type)


@cache
def _read(name: str) -> bytes:
    return resources.files("taskyard_gateway").joinpath("assets", name).read_bytes()
