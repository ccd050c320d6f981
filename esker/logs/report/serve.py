"""A live report of running runs: a small server that listens on this machine only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from esker.errors import UsageError
from esker.logs.references import Reference
from esker.logs.report.data import read_sweeps, report_data, to_json
from esker.logs.report.page import page
from esker.runs.reading import find_runs, read_runs

HOST = "127.0.0.1"


class LiveData:
    """The current runs, read again only when one of their files has changed."""

    def __init__(self, paths: Sequence[str], references: Sequence[Reference] = ()) -> None:
        self.paths = paths
        self.references = references
        self._seen: Any = None
        self._data: dict[str, Any] = {}

    def __call__(self) -> dict[str, Any]:
        seen = [_signature(path) for path in find_runs(self.paths)]
        if seen != self._seen:
            runs = read_runs(self.paths, skip=lambda text: None)  # one damaged run does not hide the others
            self._data = report_data(runs, sweeps=read_sweeps(self.paths), references=self.references, live=True)
            self._seen = seen
        return self._data


def _signature(run: Path) -> tuple[Any, ...]:
    names = ("journal.jsonl", "facts", "status", "config.toml", "lock")
    files = [*(run / name for name in names), *(run / "videos").glob("*.mp4")]
    return (run, *((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists()))


def open_server(paths: Sequence[str], port: int, references: Sequence[Reference] = ()) -> ThreadingHTTPServer:
    """A server of these runs' report, not yet running. Wrong runs, and a port that is taken, raise UsageError."""
    live = LiveData(paths, references)
    live()  # raises now if something is wrong with the runs
    try:
        return ThreadingHTTPServer((HOST, port), _handler(live))
    except (OSError, OverflowError) as error:
        raise UsageError(f"port {port} cannot be used: {error}; choose another --port, or leave it out") from error


def _handler(live: Callable[[], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Serves `/` with the page and `/data.json` with the newest data."""

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
            if host not in (HOST, "localhost"):  # another site's name that was pointed at this machine
                self.send_error(403)
            elif self.path in ("/", "/data.json"):
                try:
                    data = live()
                except (UsageError, OSError) as error:  # a run that was removed or damaged meanwhile
                    self.send_error(503, " ".join(str(error).split()).encode("ascii", "replace").decode())
                    return
                whole = self.path == "/"
                self._respond("text/html" if whole else "application/json", page(data) if whole else to_json(data))
            else:
                self.send_error(404)

        def _respond(self, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """No log: the page asks every two seconds."""

    return Handler
