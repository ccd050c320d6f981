"""`esker stop`."""

from __future__ import annotations

from argparse import Namespace

from esker.commands.attach import add_cluster_run, find_run
from esker.commands.base import Commands, command, console
from esker.config.flags import Parser


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    description = "Stop a run of the cluster. Everything committed is saved, and `esker resume` continues it."
    parser = command(commands, "stop", run, "stop a run of the cluster, after saving", description)
    add_cluster_run(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.cluster import viewer

    name, coordinator, path = find_run(namespace)
    end = viewer.stop(coordinator, name)
    console().print(f"{name}: {end.text}", highlight=False, soft_wrap=True, markup=False)
    if viewer.bring_home(coordinator, name, path):
        console().print(f"its run folder was copied here: {path}", highlight=False, soft_wrap=True)
    return 0
