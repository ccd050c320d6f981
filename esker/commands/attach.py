"""`esker attach`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser
from esker.errors import RunError

DESCRIPTION = """\
Show a run of the cluster live, from any of the cluster's machines. Ctrl-C leaves it running.

  esker attach es-s0-20260301-120000"""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "attach", run, "watch a run of the cluster from any of its machines", DESCRIPTION)
    add_cluster_run(parser)
    parser.add_argument("--quiet", action="store_true", help="print only errors")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.cluster import viewer
    from esker.logs.observers import observer_for

    name, coordinator, path = find_run(namespace)
    try:
        end = viewer.watch(coordinator, name, path, observer_for(console(), namespace.quiet))
    except KeyboardInterrupt:
        console().print(f"the run continues; stop it with: esker stop {name}", highlight=False)
        return 0
    if end.kind in ("failed", "refused"):
        raise RunError(end.text)
    return 0


def add_cluster_run(parser: Parser) -> None:
    """The flags that name a run of a cluster."""
    parser.add_argument("run", metavar="RUN", help="its name, or its run folder")
    parser.add_argument("--address", default="auto", help="the cluster, as HOST:PORT (default: auto, this machine's)")


def find_run(namespace: Namespace) -> tuple[str, Any, Path]:
    """Name, coordinator and folder of the run that the flags name, after joining its cluster."""
    from esker.cluster import viewer
    from esker.cluster.connect import join

    join(namespace.address)
    name = Path(namespace.run).name
    coordinator = viewer.find(name)
    return name, coordinator, viewer.path_of(coordinator, name)
