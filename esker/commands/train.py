"""`esker train`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from esker.algorithms import registry
from esker.commands.base import Commands, add_trust, command, console, next_commands
from esker.commands.options import add_algorithm_options, foreign_given, options_given
from esker.config.flags import Parser
from esker.errors import UsageError
from esker.runs.request import Request, algorithm_named

HELP = """\
Train a policy. Examples:

  esker train CartPole-v1
  esker train HalfCheetah-v5 --population 80 --steps 10000000 --seed 3
  esker train my_package.envs:make_env --hidden 32,32 --env-kwargs '{"wind": 2}'
  esker train Humanoid-v5 --config '{"noise_stdev": 0.02}'
  esker train LunarLander-v3 --seeds 0..4
  esker train HalfCheetah-v5 --algo aes-rl --workers 5

Precedence of options: defaults < preset < --config < flags."""


def add(commands: Commands[Parser], arguments: Sequence[str] | None) -> None:
    """Register the command, with the flags that its arguments need; None: another command is run."""
    parser = command(commands, "train", run, "train a policy", HELP)
    parser.set_defaults(arguments=arguments)
    parser.add_argument("env", metavar="ENV", nargs="?", help="a Gymnasium id, module:Id, or module:make_env")
    names = "{" + ",".join(registry.names()) + ",module:NAME}"
    parser.add_argument("--algo", metavar=names, help="algorithm (default: es, or the preset's)")
    parser.add_argument(
        "--preset",
        default="auto",
        metavar="NAME",
        help="tuned options; see `esker presets` (default: auto)",
    )
    parser.add_argument("--config", metavar="FILE|JSON", help="TOML or JSON; RLlib's and AES-RL's keys work too")
    parser.add_argument("--seeds", metavar="A..B", help="train several seeds side by side, as 0..4 or 1,2,5")
    parser.add_argument("--jobs", type=int, metavar="N", help="with --seeds: runs at a time (default: by cores)")
    add_trust(parser)
    if arguments is not None:
        add_algorithm_options(parser, arguments)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker import api
    from esker.logs.observers import observer_for

    options = options_given(namespace)
    if namespace.seeds:
        return _run_seeds(namespace, options)
    if namespace.jobs is not None:
        raise UsageError("--jobs is for --seeds, as --seeds 0..9 --jobs 4")
    foreign = foreign_given(namespace)
    quiet = bool(options.get("quiet") or foreign.get("silent"))
    run = api.train(
        namespace.env,
        algo=namespace.algo,
        preset=namespace.preset,
        config=namespace.config,
        observer=observer_for(console(), quiet),
        trust=namespace.trust,
        foreign=foreign,
        **options,
    )
    if not quiet:
        next_commands(run)
    return 0


def _run_seeds(namespace: Namespace, options: dict[str, Any]) -> int:
    """Train several seeds, side by side where cores allow it, and print them as one result."""
    from esker.algorithms.device import is_one_batch
    from esker.commands.seeds import SideBySide, command_of, parse_seeds, shares
    from esker.logs.seeds import print_seeds
    from esker.runs.loading import Run
    from esker.system.cores import available_cores

    seeds = parse_seeds(namespace.seeds)
    if "seed" in options:
        raise UsageError("--seed and --seeds exclude each other; give one of them")
    if namespace.jobs is not None and namespace.jobs < 1:
        raise UsageError(f"jobs is {namespace.jobs}; expected at least 1")
    request = _requested(namespace, options)
    if is_one_batch(request.config, request.environment):
        return _run_batch(namespace, options, seeds)
    served = getattr(request.config, "on_device", False)  # a run asks for the device, and for workers, as it needs them
    local = options.get("engine", "local") == "local"
    evolves = registry.find(algorithm_named(namespace.arguments)).commits_facts  # the others train networks, too
    workers = int(options["workers"]) if str(options.get("workers", "")).isdigit() else None
    cores = available_cores() if local and not served else 1
    share = shares(len(seeds), cores, namespace.jobs, workers, evolves and not served)
    command = command_of(namespace.arguments, options.get("run_dir"), share.workers)
    quiet = bool(options.get("quiet"))
    paths = SideBySide(seeds, command, share.jobs, console(), quiet).run()
    if not quiet:
        print_seeds(console(), [Run(path) for path in paths])
    return 0


def _requested(namespace: Namespace, options: dict[str, Any]) -> Request:
    """The request as a whole; what is wrong with it is refused before any seed starts."""
    from esker.runs.request import configure

    return configure(
        namespace.env,
        options,
        algo=namespace.algo,
        preset=namespace.preset,
        config=namespace.config,
        foreign=foreign_given(namespace),
    )


def _run_batch(namespace: Namespace, options: dict[str, Any], seeds: list[int]) -> int:
    """Train several seeds as one batch on a device."""
    from esker import api
    from esker.logs.seeds import print_seeds

    if namespace.jobs is not None:
        raise UsageError("--jobs is for seeds in processes; on a device all seeds are one batch: leave it out")
    runs = api.train_seeds(
        namespace.env,
        seeds,
        algo=namespace.algo,
        preset=namespace.preset,
        config=namespace.config,
        trust=namespace.trust,
        foreign=foreign_given(namespace),
        **options,
    )
    if not options.get("quiet"):
        print_seeds(console(), runs)
    return 0
