"""`esker train`."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from esker.algorithms import registry
from esker.commands.base import Commands, add_trust, command, console, next_commands
from esker.commands.options import add_algorithm_options, options_given
from esker.config.flags import Parser
from esker.errors import UsageError

HELP = """\
Train a policy. Examples:

  esker train CartPole-v1
  esker train HalfCheetah-v5 --population 80 --steps 10000000 --seed 3
  esker train my_package.envs:make_env --hidden 32,32 --env-kwargs '{"wind": 2}'
  esker train Humanoid-v5 --config '{"episodes_per_batch": 1000, "noise_stdev": 0.02}'
  esker train LunarLander-v3 --seeds 0..4
  esker train HalfCheetah-v5 --algo aes-rl --workers 5

Precedence of options: defaults < preset < --config < flags."""


def add(commands: Commands[Parser], arguments: Sequence[str] | None) -> None:
    """Register the command, with the flags that its arguments ask for; None: another command is run."""
    parser = command(commands, "train", run, "train a policy", HELP)
    parser.set_defaults(arguments=arguments)
    parser.add_argument("env", metavar="ENV", nargs="?", help="a Gymnasium id, module:Id, or module:make_env")
    names = "{" + ",".join(registry.names()) + ",module:NAME}"
    parser.add_argument("--algo", metavar=names, help="algorithm (default: the preset's or the configuration's, else es)")
    parser.add_argument(
        "--preset",
        default="auto",
        metavar="NAME",
        help="options found to work; see `esker presets` (default: auto; none: no preset)",
    )
    parser.add_argument(
        "--config", metavar="FILE|JSON", help="a TOML or JSON file, or inline JSON; RLlib's and AES-RL's keys are understood"
    )
    parser.add_argument("--seeds", metavar="A..B", help="train each of these seeds in turn, as 0..4 or 1,2,5")
    add_trust(parser)
    if arguments is not None:
        add_algorithm_options(parser, arguments)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker import api
    from esker.logs.observers import observer_for
    from esker.logs.seeds import print_seeds

    options = options_given(namespace)
    seeds = _seeds(namespace.seeds) if namespace.seeds else [None]
    if namespace.seeds and "seed" in options:
        raise UsageError("--seed and --seeds exclude each other; give one of them")
    runs = []
    for seed in seeds:
        chosen = dict(options) if seed is None else options | {"seed": seed}
        if seed is not None and "run_dir" in options:
            chosen["run_dir"] = str(Path(options["run_dir"]) / f"s{seed}")
        quiet = bool(options.get("quiet"))
        run = api.train(
            namespace.env,
            algo=namespace.algo,
            preset=namespace.preset,
            config=namespace.config,
            observer=observer_for(console(), quiet),
            trust=namespace.trust,
            **chosen,
        )
        runs.append(run)
        if not quiet:
            next_commands(run)
    if len(runs) > 1 and not options.get("quiet"):
        print_seeds(console(), runs)
    return 0


def _seeds(text: str) -> list[int]:
    if match := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        seeds = list(range(int(match[1]), int(match[2]) + 1))
    elif re.fullmatch(r"\d+(,\d+)*", text):
        seeds = [int(part) for part in text.split(",")]
    else:
        raise UsageError(f"seeds is {text!r}; expected a range such as 0..4 or a list such as 1,2,5")
    if not seeds:
        raise UsageError(f"seeds is {text!r}, an empty range; expected the smaller number first")
    return seeds
