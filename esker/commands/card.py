"""`esker card`."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, add_trust, command, console, run_path
from esker.config.flags import Parser

HELP = """\
Write a model folder ready for a hub: README with metrics and usage, weights as safetensors, replay.mp4, learning curve,
configuration, results.json. The folder loads as a checkpoint: `esker eval`, `esker render` and `esker.load` take it.

  esker card runs/CartPole-v1/es-s0 -o cartpole-es"""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "card", run, "write a model folder with a card, ready for a hub", HELP)
    parser.add_argument("run", metavar="RUN_DIR", help="a run or checkpoint folder, a preset with a policy, or latest")
    parser.add_argument("--checkpoint", default="best", metavar="best|latest|N", help="which policy (default: best)")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes to evaluate (default: 100)")
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: one per core)")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder to write (default: RUN/card)")
    add_trust(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.tools.card import write_card

    output = Path(namespace.output) if namespace.output else None
    card = write_card(
        Path(run_path(namespace.run)), namespace.checkpoint, namespace.episodes, output, namespace.workers, namespace.trust
    )
    for notice in card.notices:
        print(f"note: {notice}", file=sys.stderr)
    mean, std = card.results["mean_reward"], card.results["std_reward"]
    text = f"{card.folder}: mean return {mean:,.2f} ± {std:,.2f} over {card.results['n_eval_episodes']} episodes"
    console().print(text, highlight=False, soft_wrap=True)
    console().print(f"share it with: hf upload NAME/REPOSITORY {card.folder}", highlight=False, soft_wrap=True)
    return 0
