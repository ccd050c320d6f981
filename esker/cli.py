"""The command line. Status: 0 done, 2 the request was wrong, 1 it failed, 130 interrupted after saving."""

from __future__ import annotations

import json
import os
import re
import sys
from argparse import Namespace, _SubParsersAction
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from esker.config import ALGORITHMS, RESUMABLE, ESConfig
from esker.errors import RunError, UsageError
from esker.flags import Parser, add_options, given

TRAIN_HELP = """\
Train a policy. Examples:

  esker train CartPole-v1
  esker train HalfCheetah-v5 --population 80 --steps 10000000 --seed 3
  esker train my_package.envs:make_env --hidden 32,32 --env-kwargs '{"wind": 2}'
  esker train Humanoid-v5 --config '{"episodes_per_batch": 1000, "noise_stdev": 0.02}'
  esker train LunarLander-v3 --seeds 0..4

Precedence of options: defaults < preset < --config < flags."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; answers its exit status."""
    from esker import __version__

    sys.path.insert(0, os.getcwd())  # `module:make_env` means the user's own folder too
    parser = Parser(prog="esker", description="Evolution strategies for people who train policies.")
    parser.add_argument("--version", action="version", version=f"esker {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    for add in (_add_train, _add_resume, _add_eval, _add_check, _add_presets, _add_bench):
        add(commands)
    try:
        namespace = parser.parse_strictly(sys.argv[1:] if arguments is None else arguments)
        if not hasattr(namespace, "command"):
            parser.print_help()
            return 0
        return int(namespace.command(namespace))
    except UsageError as error:
        return _say(str(error), 2)
    except RunError as error:
        return _say(str(error), 1)
    except KeyboardInterrupt as error:
        return _say(str(error) or "interrupted", 130)
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def _say(text: str, status: int) -> int:
    prefix = "" if status == 130 else "error: "
    print(f"esker: {prefix}{text}", file=sys.stderr)
    return status


def _command(commands: _SubParsersAction[Parser], name: str, run: Callable[[Namespace], int], help: str, description: str | None = None) -> Parser:
    parser = commands.add_parser(name, help=help, description=description or help[0].upper() + help[1:] + ".")
    parser.set_defaults(command=run, parser=parser)
    return parser


def _add_train(commands: _SubParsersAction[Parser]) -> None:
    parser = _command(commands, "train", _train, "train a policy", TRAIN_HELP)
    parser.add_argument("env", metavar="ENV", help="a Gymnasium id, module:Id, or module:make_env")
    parser.add_argument("--algo", default="es", metavar="{" + ",".join(ALGORITHMS) + "}", help="algorithm (default: es)")
    parser.add_argument("--preset", default="auto", metavar="NAME", help="options found to work; see `esker presets` (default: auto; none: no preset)")
    parser.add_argument("--config", metavar="FILE|JSON", help="a TOML or JSON file, or inline JSON; RLlib's keys are understood")
    parser.add_argument("--seeds", metavar="A..B", help="train each of these seeds in turn, as 0..4 or 1,2,5")
    add_options(parser, ESConfig)


def _train(namespace: Namespace) -> int:
    from esker import api
    from esker.logs.console import observer_for

    options = given(namespace, ESConfig)
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
            observer=observer_for(_console(), quiet),
            **chosen,
        )
        runs.append(run)
        if not quiet:
            _next_commands(run)
    if len(runs) > 1 and not options.get("quiet"):
        _seed_table(runs)
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


def _seed_table(runs: list[Any]) -> None:
    from rich.table import Table

    table = Table("seed", "best centre return", "generations", "steps", "run", title="all seeds")
    for run in runs:
        last = run.history[-1]
        table.add_row(str(run.config.seed), f"{run.best_return:,.1f}", str(last["generation"] + 1), f"{last['env_steps']:,}", str(run.path))
    _console().print(table)


def _next_commands(run: Any) -> None:
    console = _console()
    console.print(f"best centre return {run.best_return:,.1f} in {run.path}", highlight=False, soft_wrap=True)
    console.print(f"next: esker eval {run.path}   or   esker resume {run.path} --generations N", highlight=False, soft_wrap=True)


def _add_resume(commands: _SubParsersAction[Parser]) -> None:
    description = "Continue a run: bit-identical to never having stopped. Stop conditions and engine options may be changed."
    parser = _command(commands, "resume", _resume, "continue a run, bit-identical to never having stopped", description)
    parser.add_argument("run", metavar="RUN_DIR")
    add_options(parser, ESConfig, only=RESUMABLE)


def _resume(namespace: Namespace) -> int:
    from esker import api
    from esker.logs.console import observer_for

    changes = given(namespace, ESConfig)
    quiet = bool(changes.get("quiet"))
    run = api.resume(namespace.run, observer=observer_for(_console(), quiet), **changes)
    if not quiet:
        _next_commands(run)
    return 0


def _add_eval(commands: _SubParsersAction[Parser]) -> None:
    parser = _command(commands, "eval", _eval, "evaluate a run's policy over seeded episodes")
    parser.add_argument("run", metavar="RUN_DIR")
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes (default: 100)")
    parser.add_argument("--checkpoint", default="best", metavar="best|latest|N", help="which policy (default: best)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument("--workers", type=int, metavar="N", help="worker processes (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _eval(namespace: Namespace) -> int:
    from esker import api

    result, notices = api.evaluate(
        namespace.run,
        episodes=namespace.episodes,
        checkpoint=namespace.checkpoint,
        seed=namespace.seed,
        workers=namespace.workers,
    )
    for notice in notices:
        print(f"note: {notice}", file=sys.stderr)
    summary = result.summary()
    if namespace.json:
        print(json.dumps(summary))
        return 0
    from rich.table import Table

    table = Table("measure", "value", title=f"{namespace.run}: checkpoint {summary['checkpoint']}")
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), f"{value:,.2f}" if isinstance(value, float) else f"{value:,}")
    _console().print(table)
    return 0


def _add_check(commands: _SubParsersAction[Parser]) -> None:
    parser = _command(commands, "check", _check, "is this environment understood, exact on reset, and how fast")
    parser.add_argument("env", metavar="ENV", help="a Gymnasium id, module:Id, or module:make_env")
    parser.add_argument("--env-kwargs", default="{}", metavar="JSON", help="arguments for the environment")
    parser.add_argument("--wrapper", action="append", default=[], metavar="NAME", help="module:callable that wraps it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _check(namespace: Namespace) -> int:
    from esker.check import check_environment

    report = check_environment(namespace.env, namespace.env_kwargs, tuple(namespace.wrapper))
    if namespace.json:
        print(json.dumps(report.as_dict()))
        return 0
    from rich.table import Table

    table = Table(show_header=False, title=f"esker check {namespace.env}")
    for name, value in report.lines():
        table.add_row(name, value)
    _console().print(table)
    return 0


def _add_presets(commands: _SubParsersAction[Parser]) -> None:
    parser = _command(commands, "presets", _presets, "list the presets")
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def _presets(namespace: Namespace) -> int:
    from dataclasses import asdict

    from esker.presets import load_all

    presets = load_all().values()
    if namespace.json:
        print(json.dumps([asdict(preset) for preset in presets]))
        return 0
    from rich.table import Table

    table = Table("name", "environment", "what was seen", "evidence")
    for preset in presets:
        table.add_row(preset.name, preset.env, preset.about, preset.evidence or "untested")
    _console().print(table)
    return 0


def _add_bench(commands: _SubParsersAction[Parser]) -> None:
    parser = _command(commands, "bench", _bench, "measure this machine: rollouts, update, memory, as ratios")
    parser.add_argument("--only", metavar="NAME", help="run one benchmark; names are printed by a full run")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _bench(namespace: Namespace) -> int:
    from esker.bench import run_benchmarks

    return run_benchmarks(only=namespace.only, quick=namespace.quick, as_json=namespace.json, console=_console())


def _console() -> Any:
    from rich.console import Console

    return Console()


if __name__ == "__main__":
    sys.exit(main())
