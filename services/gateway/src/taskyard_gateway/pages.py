"""The gateway's own pages: the console, the OpenAPI document, and a reference page that needs no network."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.responses import Response

from taskyard_gateway.answers import JSON

# The reference is complete in itself: nothing is fetched, and no script runs.
_REFERENCE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# The console runs its own modules and calls its own origin, and no page may show it in a frame.
_CONSOLE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_VERSIONED = re.compile(r"/console/([0-9a-f]{16})/(.+)")
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Page:
    """One file as it is served."""

    content: bytes
    media_type: str
    policy: str

    @property
    def tag(self) -> str:
        """Its entity tag: the same in every replica of one version."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:32]}"'


def find(path: str, known_tag: str = "") -> Awaitable[Response] | None:
    """The page of this path, if there is one; without content if the client has it already."""
    named = _VERSIONED.match(path)
    page = _pages().get(f"/console/{named[2]}" if named else path)
    if page is None:
        return None
    # A replica of another version, in the middle of an upgrade, serves its own file; nobody may keep that.
    return _answer(page, known_tag, kept=named is not None and named[1] == _console_version())


async def _answer(page: Page, known_tag: str, *, kept: bool) -> Response:
    caching = "public, max-age=31536000, immutable" if kept else "no-cache"
    headers = {"content-security-policy": page.policy, "cache-control": caching, "etag": page.tag}
    headers["referrer-policy"] = "no-referrer"
    if known_tag == page.tag:
        return Response(status_code=304, headers=headers)
    return Response(page.content, 200, headers, page.media_type)


@cache
def _console_files() -> dict[str, Page]:
    found = {}
    for name, file in _files(resources.files("taskyard_gateway").joinpath("console"), ""):
        media_type = _TYPES.get(name[name.rfind(".") :])
        if media_type is not None and name != "index.html":
            found[f"/console/{name}"] = Page(file.read_bytes(), media_type, _CONSOLE_POLICY)
    return found


@cache
def _console_version() -> str:
    """Names the console's files together, so that a browser need not ask for each whether it has changed."""
    tags = "".join(f"{path} {page.tag}\n" for path, page in sorted(_console_files().items()))
    return hashlib.sha256(tags.encode()).hexdigest()[:16]


@cache
def _pages() -> dict[str, Page]:
    package = resources.files("taskyard_gateway")
    console = _read(package, "console/index.html").replace(
        b'="console/', f'="console/{_console_version()}/'.encode()
    )
    return {
        "/openapi.json": Page(_read(package, "assets/openapi.json"), JSON, _REFERENCE_POLICY),
        "/docs": Page(_read(package, "assets/docs.html"), "text/html", _REFERENCE_POLICY),
        "/": Page(console, "text/html", _CONSOLE_POLICY),
        **_console_files(),
    }


def _read(package: Traversable, name: str) -> bytes:
    return package.joinpath(*name.split("/")).read_bytes()


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry
