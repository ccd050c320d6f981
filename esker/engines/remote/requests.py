"""HTTP underneath: requests with a token and a JSON body in, JSON or raw bytes out. The standard library's server."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from esker.errors import UsageError

LARGEST = 16 * 2**20  # bytes of a request: scores of a million members

Respond = Callable[[str, dict[str, Any]], "dict[str, Any] | bytes"]


class RequestRefused(Exception):
    """A request that is refused, with its status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class HttpServer:
    """Responds to POST requests that show the token, each in its own thread."""

    def __init__(self, host: str, port: int, token: str, respond: Respond) -> None:
        handler = type("Handler", (_Handler,), {"token": token, "respond": staticmethod(respond)})
        try:
            self._server = ThreadingHTTPServer((host, port), handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"cannot listen at {host}:{port} ({reason}); choose another host or port") from error
        self._server.daemon_threads = True
        self.address = f"{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds that a connection may be idle
    token: str
    respond: Respond

    def do_POST(self) -> None:
        """Check the token first, then the body."""
        try:
            length = self._length()
            if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), f"Bearer {self.token}".encode()):
                raise RequestRefused(401, "the token is missing or wrong")
            self._send(200, self.respond(self.path, self._body(length)))
        except RequestRefused as error:
            if error.status in (401, 413):
                self.close_connection = True  # its body has not been read
            self._send(error.status, {"error": str(error)})

    def _length(self) -> int:
        text = self.headers.get("Content-Length", "0")
        if not text.isdigit() or int(text) > LARGEST:
            raise RequestRefused(413, f"expected a body of at most {LARGEST} bytes")
        return int(text)

    def _body(self, length: int) -> dict[str, Any]:
        try:
            body = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise RequestRefused(400, "expected a JSON object")
        return body

    def _send(self, status: int, content: dict[str, Any] | bytes) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream" if isinstance(content, bytes) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle(self) -> None:
        """Ignore workers that are killed in mid-request."""
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
