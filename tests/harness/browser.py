"""A real browser that watches by its EventSource; a proxy gives its page and the gateway one origin."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.harness.leash import tied

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
PAGE = """<!doctype html><title>watching</title><script>
async function watch() {
  const key = await (await fetch('/key')).text();
  const headers = {'Content-Type': 'application/json'};
  const began = await fetch('/session', {method: 'POST', headers, body: JSON.stringify({key})});
  if (!began.ok) return fetch('/seen', {method: 'POST', body: JSON.stringify({failed: began.status})});
  const source = new EventSource('%s');
  let last = Promise.resolve();
  source.onmessage = (event) => {
    last = last.then(() => fetch('/seen', {method: 'POST', body: event.data}));
  };
  source.onerror = () => {
    const state = source.readyState;
    last = last.then(() => fetch('/seen', {method: 'POST', body: JSON.stringify({error: state})}));
  };
}
watch();
</script>"""


class Browser:
    """What the page has reported: the messages of its stream, and how often that broke."""

    def __init__(self, gateway_port: int, path: str, key: str) -> None:
        self.gateway_port = gateway_port
        self.page = (PAGE % path).encode()
        self.key = key
        self.received: list[Any] = []
        self.errors: list[int] = []
        self.failed = 0
        self.opened = threading.Event()

    def report(self, message: dict[str, Any]) -> None:
        if "error" in message:
            self.errors.append(message["error"])
        elif "failed" in message:
            self.failed = message["failed"]
        else:
            self.received.append(message)
        self.opened.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    browser: Browser

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        own = {"/": self.browser.page, "/key": self.browser.key.encode()}
        if self.path in own:
            self._answer(own[self.path], "text/html" if self.path == "/" else "text/plain")
        else:
            self._forward(b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/seen":
            self.browser.report(json.loads(body))
            self._answer(b"{}", "application/json")
        else:
            self._forward(body)

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _forward(self, body: bytes) -> None:
        """Pass the request to the gateway, and its answer back byte by byte until either side ends."""
        self.close_connection = True
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.browser.gateway_port)) as up,
        ):
            kept = [
                f"{name}: {value}" for name, value in self.headers.items() if name.lower() != "connection"
            ]
            head = "\r\n".join([f"{self.command} {self.path} HTTP/1.1", *kept, "Connection: close", "", ""])
            up.sendall(head.encode() + body)
            while part := up.recv(65536):
                self.wfile.write(part)
                self.wfile.flush()


@contextlib.contextmanager
def watching(gateway_port: int, path: str, key: str, folder: Path) -> Iterator[Browser]:
    """A browser on a page that signs in with the key and watches this path."""
    assert PROGRAM is not None
    browser = Browser(gateway_port, path, key)
    handler = type("Handler", (_Handler,), {"browser": browser})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://localhost:{server.server_address[1]}/"
    command = [PROGRAM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--remote-debugging-port=0", url]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(tied(*command), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield browser
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        server.shutdown()
        server.server_close()
