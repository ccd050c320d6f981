"""Make the evidence of presets: train their seeds, evaluate them, store the curves, and print the whole table.

    python benchmarks/evidence.py halfcheetah/es swimmer/ars --seeds 0..4 --workers 8 --jobs 2
    python benchmarks/evidence.py --all --seeds 0..2     # every preset that is shipped

writes benchmarks/results/halfcheetah-es.json and so on: the command, and for every seed the commit, the curve of the
centre's return against steps and 100 evaluation episodes of the best checkpoint; median and worst are over seeds. The same
command again resumes what was interrupted (run folders are kept in `--runs`), evaluates only what has changed, and counts
each seed and each run once. `--collect` trains nothing: it evaluates the runs as far as they are.

Options behind `--` go to `esker train` as they are and become part of the stored command. `--mark` writes the outcome
into the preset's `evidence`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

sys.path.insert(0, str(Path(__file__).parent))

from evidence_machine import ROOT, commit, machine

from esker import presets
from esker.commands.seeds import parse_seeds
from esker.errors import RunError, UsageError
from esker.runs.folder import RunFolder

POINTS = 200  # kept of each curve
EVALUATION_SEED = 12345
Result = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """One preset: how it is trained, where its runs are, where its evidence is stored."""

    preset: presets.Preset
    options: tuple[str, ...]  # behind `--`
    runs: Path
    target: Path

    @property
    def train(self) -> list[str]:
        """The command, without seed and folder."""
        preset = self.preset
        return ["train", preset.env, "--preset", preset.name, "--algo", preset.algo, *self.options]

    @property
    def command(self) -> str:
        """What is stored as the command."""
        return f"esker {shlex.join(self.train)} --seed N"

    def stored(self) -> list[Result]:
        """The seeds that the results file has already. Those of another command raise UsageError."""
        if not self.target.exists():
            return []
        found = json.loads(self.target.read_text())
        if found["command"] != self.command:
            raise UsageError(f"{self.target} holds seeds of another command, {found['command']!r}; --replace drops them")
        return list(found["seeds"])


def main(given: list[str]) -> int:
    """Train, evaluate, store, print."""
    arguments = parse(given)
    plans = [plan_of(name, arguments) for name in names_of(arguments)]
    for plan in plans:
        if arguments.replace:
            plan.target.unlink(missing_ok=True)
        plan.stored()  # refused before anything is trained
    jobs = [(plan, seed) for seed in parse_seeds(arguments.seeds) for plan in plans]
    failed = []
    with ThreadPoolExecutor(arguments.jobs) as pool:
        futures = [(plan, seed, pool.submit(one_seed, plan, seed, arguments)) for plan, seed in jobs]
        for plan, seed, future in futures:
            try:
                store(plan, future.result())
            except RunError as error:
                failed.append(f"{plan.preset.name}, seed {seed}: {error}")
    print_table(plans, arguments.mark)
    print("\n".join(failed), file=sys.stderr, end="\n" if failed else "")
    return int(bool(failed))


def parse(given: list[str]) -> argparse.Namespace:
    """The flags; what stands behind `--` is kept as `rest`."""
    at = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", nargs="*")
    parser.add_argument("--all", action="store_true", help="every preset that is shipped")
    parser.add_argument("--seeds", default="0..4", help="as 0..4 or 1,2,5")
    parser.add_argument("--workers", type=int, default=2, help="worker processes of each run")
    parser.add_argument("--jobs", type=int, default=1, help="seeds trained at the same time")
    parser.add_argument("--episodes", type=int, default=100, help="evaluation episodes per seed")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "evidence", help="where the run folders are kept")
    parser.add_argument("--collect", action="store_true", help="train nothing; evaluate the runs as far as they are")
    parser.add_argument("--replace", action="store_true", help="drop stored seeds first")
    parser.add_argument("--mark", action="store_true", help="write the outcome into the preset file")
    namespace = parser.parse_args(given[:at])
    namespace.rest = given[at + 1 :]
    return namespace


def names_of(arguments: argparse.Namespace) -> list[str]:
    """The presets that are asked for, each once. None at all raises UsageError."""
    names = list(presets.load_all()) if arguments.all else list(dict.fromkeys(arguments.preset))
    if not names:
        raise UsageError("no preset was named; give some, or --all")
    return names


def plan_of(name: str, arguments: argparse.Namespace) -> Plan:
    """What is done for one preset."""
    preset = presets.find(name, "es")
    file = preset.name.replace("/", "-")
    return Plan(preset, tuple(arguments.rest), arguments.runs / file, arguments.results / f"{file}.json")


def one_seed(plan: Plan, seed: int, arguments: argparse.Namespace) -> Result | None:
    """Train or resume one seed and evaluate its best checkpoint, unless that was done. None: there is nothing to collect."""
    path = plan.runs / f"s{seed}"
    workers = ["--workers", str(arguments.workers)]
    if arguments.collect and not (path / "config.toml").exists():
        return None
    if not arguments.collect:
        own = ["--seed", str(seed), "--run-dir", str(path), "--quiet", *workers]
        esker(*(["resume", str(path), "--quiet", *workers] if (path / "config.toml").exists() else [*plan.train, *own]))
    folder = RunFolder.open(path)
    rows = folder.rows()
    if not rows:
        return None
    former = [result for result in plan.stored() if result.get("run") == folder.identity]
    if former and former[0]["generations"] == len(rows) and former[0]["evaluation"]["episodes"] == arguments.episodes:
        return former[0]
    evaluate = ["eval", str(path), "--episodes", str(arguments.episodes), "--seed", str(EVALUATION_SEED), "--json"]
    return result_of(folder, rows, json.loads(esker(*evaluate, *workers)))


def result_of(folder: RunFolder, rows: list[Result], evaluation: Result) -> Result:
    """What is stored of a seed."""
    last = rows[-1]
    return {
        "seed": folder.values()["seed"],  # a copy of a run is that run
        "run": folder.identity,
        "commit": commit(),
        "status": folder.status(),
        "evaluation": evaluation,
        "best_center_return": last["best_return"],
        "generations": last["generation"] + 1,
        "env_steps": last["env_steps"],
        **({"training_steps": last["training_steps"]} if "training_steps" in last else {}),
        "wall_time": round(last["wall_time"], 1),
        "curve": curve(rows),
    }


def curve(rows: list[Result]) -> dict[str, list[Any]]:
    """Steps, seconds and centre return of about POINTS generations, the last one included.

    `training_steps` are the steps in a replay buffer, which is what papers count; `env_steps` all that were simulated.
    """
    step = max(1, len(rows) // POINTS)
    chosen = rows[::-1][::step][::-1]
    trained = {"training_steps": [row["training_steps"] for row in chosen]} if "training_steps" in rows[0] else {}
    return {
        **trained,
        "env_steps": [row["env_steps"] for row in chosen],
        "wall_time": [round(row["wall_time"], 1) for row in chosen],
        "center_return": [row["center_return"] for row in chosen],
    }


def esker(*arguments: str) -> str:
    """Run the command line as a user would. A failure raises RunError."""
    done = subprocess.run([sys.executable, "-m", "esker.cli", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RunError(f"esker {shlex.join(arguments)} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def store(plan: Plan, result: Result | None) -> None:
    """Write a seed into the results file: in place of what was known of this seed or this run."""
    if result is None:
        return
    others = [one for one in plan.stored() if one["seed"] != result["seed"] and one.get("run", 0) != result["run"]]
    results = sorted([*others, result], key=lambda one: int(one["seed"]))
    means = [one["evaluation"]["mean"] for one in results]
    evidence = {
        "preset": plan.preset.name,
        "env": plan.preset.env,
        "command": plan.command,
        "commit": result["commit"],
        "machine": machine(),
        "median": statistics.median(means),
        "worst": min(means),
        "seeds": results,
    }
    if plan.target.exists() and "note" in (former := json.loads(plan.target.read_text())):
        evidence["note"] = former["note"]  # written by hand
    plan.target.parent.mkdir(parents=True, exist_ok=True)
    whole = plan.target.with_suffix(".new")
    whole.write_text(json.dumps(evidence, indent=1) + "\n")
    whole.replace(plan.target)  # other seeds read it meanwhile


def print_table(plans: list[Plan], write: bool) -> None:
    """One line for each preset; with `write`, into its file too."""
    for plan in plans:
        if not plan.target.exists():
            print(f"{plan.preset.name}: nothing yet")
            continue
        shown = plan.target.relative_to(ROOT) if plan.target.is_relative_to(ROOT) else plan.target.name
        text = f"{sentence(plan.stored())} ({shown})"
        print(f"{plan.preset.name}: {text}")
        if write:
            mark(plan.preset.name, text)


def sentence(results: list[Result]) -> str:
    """The claim in one line."""
    means = [result["evaluation"]["mean"] for result in results]
    least, most = (f"{pick(result['env_steps'] for result in results) / 1e6:,.1f}M" for pick in (min, max))
    span = most if least == most else f"{least} to {most}"
    return f"median {statistics.median(means):,.0f}, worst {min(means):,.0f} of {len(means)} seeds after {span} steps"


def mark(name: str, text: str) -> None:
    """Let the preset state what was seen."""
    path = presets.FOLDER / f"{name}.toml"
    values = tomllib.loads(path.read_text())
    options = values.pop("options")
    path.write_text(tomli_w.dumps({**values, "evidence": text, "options": options}))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except UsageError as error:
        sys.exit(str(error))
