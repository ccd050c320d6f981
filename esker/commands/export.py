"""`esker export`."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, add_trust, command, console, run_path
from esker.config.flags import Parser

ALL = "state-dict,torchscript,torch-export,onnx"
HELP = """\
Write a run's policy for use without esker: a torch state dict, TorchScript, torch.export and ONNX, the last three with
observation normaliser and action head inside. Each file is read back and must act as the policy does on 1,000
observations. A network with memory takes its state as further inputs and returns the next state; policy.json lists them.

  esker export runs/CartPole-v1/es-s0
  esker export RUN --format onnx -o deploy"""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "export", run, "write a policy for use without esker: torch, ONNX", HELP)
    parser.add_argument("run", metavar="RUN_DIR", help="a run or checkpoint folder, a preset with a policy, or latest")
    parser.add_argument("--checkpoint", default="best", metavar="best|latest|N", help="which policy (default: best)")
    parser.add_argument("--format", default=ALL, metavar="NAME,…", help=f"which files (default: {ALL})")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder to write to (default: RUN/export)")
    add_trust(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.tools.export import OBSERVATIONS, export

    forms = [part.strip() for part in namespace.format.split(",") if part.strip()]
    output = Path(namespace.output) if namespace.output else None
    done, notices = export(Path(run_path(namespace.run)), namespace.checkpoint, forms, output, namespace.trust)
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)
    from esker.logs.tables import print_table

    rows = [(one.form, one.path.name, f"{one.path.stat().st_size / 1024:,.0f}", f"{one.difference:.2g}") for one in done]
    print_table(console(), ("format", "file", "KiB", "largest difference"), rows, right=("KiB", "largest difference"))
    text = f"{done[0].path.parent}: each gives the policy's actions on {OBSERVATIONS:,} observations"
    console().print(text, highlight=False, soft_wrap=True)
    return 0
