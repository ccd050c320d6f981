"""`esker report`."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, add_trust, command, console, run_path
from esker.config.flags import Parser
from esker.errors import UsageError
from esker.logs.references import METAVAR, Reference, parse_reference

HELP = """\
Write one self-contained HTML page about one or many runs: learning curves, fitness distribution, centre rank, speed,
what differs between configurations, versions, videos. It needs no network and can be mailed. Examples:

  esker report runs/CartPole-v1/es-s0
  esker report runs/a runs/b --render -o compare.html
  esker report runs/Humanoid-v5 --reference '6000=Salimans et al.'
  esker report runs --serve

A folder of runs stands for all of them; runs that differ in their seed only are drawn as one."""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "report", run, "write an interactive page about runs, or serve it live", HELP)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders, folders of runs, or latest")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the page (default: RUN/report.html; report.html for several)"
    )
    parser.add_argument(
        "--reference", action="append", default=[], metavar=METAVAR, help="horizontal line to compare with; repeatable"
    )
    parser.add_argument("--render", action="store_true", help="record the best policy of runs that have no video yet")
    parser.add_argument("--serve", action="store_true", help="serve the page on this machine and follow the runs")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port for --serve (default: a free one)")
    add_trust(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    if namespace.serve and namespace.output:
        raise UsageError("--serve writes no file, so -o has no effect; leave out one of them")
    if namespace.port and not namespace.serve:
        raise UsageError("--port is for --serve; add --serve or leave it out")
    namespace.runs = [run_path(path) for path in namespace.runs]
    if namespace.render:
        _record(namespace.runs, namespace.trust)
    references = [parse_reference(text) for text in namespace.reference]
    if namespace.serve:
        return _serve(namespace.runs, namespace.port, references)
    return _write(namespace.runs, namespace.output, references)


def _write(runs: list[str], output: str | None, references: list[Reference]) -> int:
    from esker.logs.report.data import read_sweeps, report_data
    from esker.logs.report.page import write_page
    from esker.runs.reading import read_runs
    from esker.system.words import count

    found = read_runs(runs, skip=lambda text: print(f"note: {text}", file=sys.stderr))
    only = found[0].folder.path if len(found) == 1 else Path(runs[0]) if len(runs) == 1 else Path()
    target = Path(output) if output else only / "report.html"
    if target.suffix not in (".html", ".htm"):
        raise UsageError(f"output is {str(target)!r}; expected a file that ends in .html")
    write_page(report_data(found, sweeps=read_sweeps(runs), references=references), target)
    size = target.stat().st_size / 1024
    console().print(f"{target}: {count(len(found), 'run')}, {size:,.0f} KiB", highlight=False, soft_wrap=True)
    return 0


def _serve(runs: list[str], port: int, references: list[Reference]) -> int:
    from esker.logs.report.serve import open_server

    with open_server(runs, port, references) as server:
        address = f"http://{server.server_address[0]!s}:{server.server_address[1]}/"
        print(f"serving {address} until Ctrl-C", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


def _record(runs: list[str], trust: list[str]) -> None:
    from esker.runs.reading import find_runs
    from esker.tools.render import Options, render

    for path in find_runs(runs):
        if not any((path / "videos").glob("*.mp4")):
            recording = render(path, "best", Options(), trust=trust)
            console().print(f"recorded {recording.files[0]}", highlight=False, soft_wrap=True)
