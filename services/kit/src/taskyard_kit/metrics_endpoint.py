"""The HTTP endpoint of a process: its metrics for Prometheus, and whether it lives and is ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from taskyard_kit import health_state

_PAGES = ("/", "/metrics")
_TEXT = [("Content-Type", "text/plain; charset=utf-8")]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A scrape is no event."""


def start(host: str, port: int) -> _Server:
    """Serve on a thread of its own; raises OSError if it cannot listen."""
    from prometheus_client import make_wsgi_app

    metrics = make_wsgi_app()

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        if path in _PAGES:
            answer: Iterable[bytes] = metrics(environ, start_response)
            return answer
        if path == "/live":
            start_response("200 OK", _TEXT)
            return [b"live\n"]
        if path == "/ready":
            ready = health_state.is_ready()
            start_response("200 OK" if ready else "503 Service Unavailable", _TEXT)
            return [b"ready\n" if ready else b"not ready\n"]
        start_response("404 Not Found", _TEXT)
        return [b"the pages are /metrics, /ready and /live\n"]

    server = make_server(host, port, app, server_class=_Server, handler_class=_QuietHandler)
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
