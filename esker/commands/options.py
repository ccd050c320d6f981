"""The flags of `train` and `sweep`: those of the algorithm that the command line names."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from esker.algorithms import registry
from esker.config.aesrl import SAME
from esker.config.flags import Parser, add_options
from esker.config.legacy import OLD_NAMES
from esker.config.translate import FLAGS, SWITCHES
from esker.errors import UsageError
from esker.runs.request import algorithm_named, refuse_others

NOT_FLAGS = ("env", "algo")
FOREIGN = "foreign "  # before the names of other systems' flags in a namespace
# What `--help` lists; `--help-all` lists everything.
COMMON = frozenset(
    [
        *("population", "sigma", "lr", "optimizer", "weight_decay", "shaping", "strategy", "noise"),
        *("episodes_per_member", "network", "hidden", "activation", "normalize_observations"),
        *("init_from", "env_kwargs", "wrapper", "max_episode_steps"),
        *("generations", "steps", "training_steps", "wall_time", "goal", "patience"),
        *("engine", "address", "workers", "device"),
        *("batch_size", "discount", "replay_size", "initial_steps", "exploration_noise", "rl_ratio", "rl_population"),
        *("stdev_lr", "restarts", "deterministic", "mean_update", "mean_update_param", "var_update", "var_init"),
        *("seed", "run_dir", "checkpoint_every", "log", "quiet"),
    ]
)


def add_algorithm_options(parser: Parser, arguments: Sequence[str], without: Iterable[str] = ()) -> None:
    """Flags for the options of the algorithm that `arguments` name, and hidden ones under older names."""
    try:
        algorithm = registry.find(algorithm_named(arguments))
    except UsageError:  # reported when the command runs
        algorithm = registry.find("es")
    known = {option.name for option in fields(algorithm.config)} - set(without)
    add_options(parser, algorithm.config, known, None if "--help-all" in arguments else COMMON)
    for name in (*OLD_NAMES, *({"strategy"} - known)):  # a strategy may have named the algorithm
        parser.add_argument("--" + name.replace("_", "-"), default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    for name in FLAGS:
        nargs: dict[str, Any] = {"nargs": "?", "const": True} if name in SWITCHES else {}
        parser.add_argument(f"--{name}", dest=FOREIGN + name, default=argparse.SUPPRESS, help=argparse.SUPPRESS, **nargs)
    for option in fields(algorithm.config):  # AES-RL's spelling of what both have
        if "_" in option.name and option.name in known and option.name in SAME:
            parser.add_argument(f"--{option.name}", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("--help-all", action="help", help="show all options of the algorithm")
    parser.usage = f"{parser.prog} ENV [options]"
    parser.explain = lambda flag: refuse_others(algorithm, [flag.removeprefix("--").replace("-", "_")])


def foreign_given(namespace: Namespace) -> dict[str, Any]:
    """What was given under other systems' names; numbers are numbers."""
    given = {name.removeprefix(FOREIGN): value for name, value in vars(namespace).items() if name.startswith(FOREIGN)}
    return {name.replace("-", "_"): _value(value) for name, value in given.items()}


def _value(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def options_given(namespace: Namespace) -> dict[str, Any]:
    """The options that were given as flags, under the names they were given."""
    algorithms = [registry.find(algorithm_named(namespace.arguments))]
    known = {option.name for algorithm in algorithms for option in fields(algorithm.config)} | {"strategy", *OLD_NAMES}
    return {name: value for name, value in vars(namespace).items() if name in known and name not in NOT_FLAGS}
