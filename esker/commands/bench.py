"""`esker bench`."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "bench", run, "measure this machine: rollouts, update, memory, as ratios")
    parser.add_argument("--only", metavar="NAME", help="run one benchmark; names are printed by a full run")
    parser.add_argument("--workers", metavar="N,N", type=counts, help="with --only scaling: for how many workers")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.bench import run_benchmarks

    return run_benchmarks(
        only=namespace.only,
        quick=namespace.quick,
        as_json=namespace.json,
        console=console(),
        workers=namespace.workers,
    )


def counts(text: str) -> list[int]:
    """Numbers of workers, as `1,2,4`. Anything else raises ArgumentTypeError."""
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isdecimal() and int(number) > 0 for number in numbers):
        raise ArgumentTypeError(f"{text!r}; expected numbers of workers, as 1,2,4")
    return [int(number) for number in numbers]
