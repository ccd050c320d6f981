"""`esker sweep`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from esker.algorithms import registry
from esker.commands.base import Commands, command, console
from esker.commands.options import add_algorithm_options, foreign_given, options_given
from esker.config.flags import Parser

OF_ONE_RUN = frozenset({"run_dir", "wandb_id"})  # each trial has its own
HELP = """\
Search for good options: many ordinary runs whose options Optuna chooses, stopped early where they lag behind. Examples:

  esker sweep CartPole-v1 --trials 30
  esker sweep HalfCheetah-v5 --trials 50 --steps 2000000 --space lr=0.001..0.1:log sigma=0.01..0.1:log hidden=32x32,64x64
  esker sweep CartPole-v1 --sampler grid --space lr=0.01,0.05 sigma=0.05..0.2:4 --pruner none
  esker sweep Hopper-v5 --name hop --space space.toml --trials 100

The same command again continues a sweep that was stopped, and in another process (on another machine, with the folder
shared) joins it: `esker sweep Hopper-v5 --name hop --trials 100`. Options that are not swept are those of `esker train`;
--steps, --generations or --wall-time is the whole budget of a trial, of which pruned trials use a part."""


def add(commands: Commands[Parser], arguments: Sequence[str] | None) -> None:
    """Register the command, with the flags that its arguments need; None: another command is run."""
    parser = command(commands, "sweep", run, "search for good options with Optuna", HELP)
    parser.set_defaults(arguments=arguments)
    parser.add_argument("env", metavar="ENV", nargs="?", help="a Gymnasium id, module:Id, or module:make_env")
    group = parser.add_argument_group("sweep")
    group.add_argument("--trials", type=int, default=50, metavar="N", help="trials of all processes together (default: 50)")
    group.add_argument(
        "--space",
        nargs="+",
        action="extend",
        default=[],
        metavar="SPACE",
        help="name=low..high, name=low..high:log, name=a,b,c, or a TOML file; :N is N points of a grid "
        "(default: lr, sigma, weight decay, sampling, shaping, hidden, population)",
    )
    group.add_argument("--name", help="the sweep's name, by which others join it (default: ENV-ALGO)")
    group.add_argument("--sweep-dir", default="sweeps", metavar="DIR", help="where sweeps are kept (default: sweeps)")
    group.add_argument("--sampler", choices=("tpe", "random", "grid"), help="how options are suggested (default: tpe)")
    group.add_argument(
        "--pruner", choices=("hyperband", "asha", "none"), help="how trials are stopped early (default: hyperband)"
    )
    group.add_argument("--reduction", type=int, metavar="N", help="one trial in N continues at each rung (default: 3)")
    group.add_argument("--min-budget", type=int, metavar="N", help="budget of every trial (default: whole budget / N²)")
    group.add_argument("--storage", choices=("journal", "sqlite"), help="where trials are kept (default: journal)")
    group.add_argument("--sweep-seed", type=int, metavar="N", help="seed of the suggestions (default: 0)")
    names = "{" + ",".join(registry.names()) + ",module:NAME}"
    parser.add_argument("--algo", metavar=names, help="algorithm (default: es, or the preset's)")
    parser.add_argument("--preset", metavar="NAME", help="options to begin from (default: auto; none: no preset)")
    parser.add_argument("--config", metavar="FILE|JSON", help="options for all trials")
    if arguments is not None:
        add_algorithm_options(parser, arguments, without=OF_ONE_RUN)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.sweep.run import Request, sweep

    request = Request(
        env=namespace.env,
        name=namespace.name,
        folder=namespace.sweep_dir,
        algo=namespace.algo,
        preset=namespace.preset,
        config=namespace.config,
        space=namespace.space,
        sampler=namespace.sampler,
        pruner=namespace.pruner,
        reduction=namespace.reduction,
        min_budget=namespace.min_budget,
        storage=namespace.storage,
        seed=namespace.sweep_seed,
        options=options_given(namespace),
        foreign=foreign_given(namespace),
    )
    done = sweep(request, namespace.trials, console())
    if not request.options.get("quiet"):
        _conclude(done)
    return 0


def _conclude(done: object) -> None:
    """Print what was found, and what to do with it."""
    from esker.sweep.display import params_text
    from esker.sweep.study import Sweep
    from esker.sweep.summary import best_trial

    assert isinstance(done, Sweep)
    output, best = console(), best_trial(done)
    if best is None:
        output.print("no trial has completed yet", highlight=False)
        return
    text = f"best: trial {best.number}, centre return {best.value:,.1f}: {params_text(best.params)}"
    output.print(text, highlight=False, soft_wrap=True)
    file = done.folder / "best.toml"
    output.print(f"next: esker train {done.plan.env} --preset {file}", highlight=False, soft_wrap=True)
