"""`esker stop`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    description = "Stop a run of the cluster. Everything committed is saved, and `esker resume` continues it."
    parser = command(commands, "stop", run, "stop a run of the cluster, after saving", description)
    parser.add_argument("run", metavar="RUN", help="its name, or its run folder")
    parser.add_argument("--address", default="auto", help="the cluster, as HOST:PORT (default: auto, this machine's)")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.cluster import viewer
    from esker.cluster.connect import join

    join(namespace.address)
    name = Path(namespace.run).name
    coordinator = viewer.find(name)
    path = viewer.path_of(coordinator, name)
    end = viewer.stop(coordinator, name)
    console().print(f"{name}: {end.text}", highlight=False, soft_wrap=True, markup=False)
    if viewer.bring_home(coordinator, name, path):
        console().print(f"its run folder was copied here: {path}", highlight=False, soft_wrap=True)
    return 0
