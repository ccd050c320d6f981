"""Make a preset's evidence: train its seeds, evaluate them, store the curves, and let the preset name the file.

    python benchmarks/evidence.py halfcheetah/es --seeds 0..4 --workers 8 --jobs 2

writes benchmarks/results/halfcheetah-es.json: the command, the commit, and for every seed the curve of the centre's
return against steps and wall-clock and 100 evaluation episodes of the best checkpoint; median and worst are over seeds.
Options behind `--` go to `esker train` as they are and become part of the stored command. `--mark` writes the outcome
into the preset's `evidence`; without it the preset stays "untested".
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tomli_w

from esker import presets

ROOT = Path(__file__).resolve().parent.parent
POINTS = 200  # kept of each curve


def main() -> int:
    """Train, evaluate, store."""
    arguments = parse()
    name = arguments.preset
    preset = presets.find(name, "es")
    command = ["esker", "train", preset.env, "--preset", name, "--algo", preset.algo, *arguments.rest]
    with tempfile.TemporaryDirectory(dir=arguments.runs) as scratch, ThreadPoolExecutor(arguments.jobs) as pool:
        runs = Path(arguments.keep or scratch)
        results = list(pool.map(lambda seed: one_seed(command, seed, runs, arguments), seeds_of(arguments.seeds)))
    evidence = summary(preset, shlex.join(command), results)
    target = arguments.results / f"{name.replace('/', '-')}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(evidence, indent=1) + "\n")
    text = f"{sentence(evidence)} ({target.relative_to(ROOT) if target.is_relative_to(ROOT) else target.name})"
    print(text)
    if arguments.mark:
        mark(name, text)
    return 0


def parse() -> argparse.Namespace:
    """The flags; what stands behind `--` is kept as `rest`."""
    own, rest = (sys.argv[1:], []) if "--" not in sys.argv else split(sys.argv[1:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset")
    parser.add_argument("--seeds", default="0..4", help="as 0..4 or 1,2,5")
    parser.add_argument("--workers", type=int, default=2, help="worker processes of each run")
    parser.add_argument("--jobs", type=int, default=1, help="seeds trained at the same time")
    parser.add_argument("--episodes", type=int, default=100, help="evaluation episodes per seed")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--runs", help="where scratch run folders are made")
    parser.add_argument("--keep", help="keep the run folders here; a run that is already there is resumed")
    parser.add_argument("--mark", action="store_true", help="write the outcome into the preset file")
    namespace = parser.parse_args(own)
    namespace.rest = rest
    return namespace


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What is ours and what is for `esker train`."""
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def seeds_of(text: str) -> list[int]:
    """0..4 or 1,2,5."""
    if match := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        return list(range(int(match[1]), int(match[2]) + 1))
    return [int(part) for part in text.split(",")]


def one_seed(command: list[str], seed: int, runs: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Train (or resume) one seed and evaluate its best checkpoint."""
    folder = runs / f"s{seed}"
    own = ["--seed", str(seed), "--run-dir", str(folder), "--quiet"]
    workers = ["--workers", str(arguments.workers)]
    if (folder / "config.toml").exists():
        esker("resume", str(folder), "--quiet", *workers)
    else:
        esker(*command[1:], *own, *workers)
    found = json.loads(
        esker("eval", str(folder), "--episodes", str(arguments.episodes), "--json", "--seed", "12345", *workers)
    )
    rows = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    last = rows[-1]
    return {
        "seed": seed,
        "evaluation": found,
        "best_center_return": last["best_return"],
        "generations": last["generation"] + 1,
        "env_steps": last["env_steps"],
        "wall_time": round(last["wall_time"], 1),
        "curve": curve(rows),
    }


def curve(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
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
    """Run the command line as a user would."""
    done = subprocess.run([sys.executable, "-m", "esker.cli", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"esker {shlex.join(arguments)} ended with status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def summary(preset: presets.Preset, command: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Everything that the preset's claim rests on."""
    means = [result["evaluation"]["mean"] for result in results]
    return {
        "preset": preset.name,
        "env": preset.env,
        "command": f"{command} --seed N",
        "commit": commit(),
        "machine": {"cpu": cpu(), "python": platform.python_version(), "packages": packages()},
        "median": statistics.median(means),
        "worst": min(means),
        "seeds": results,
    }


def sentence(evidence: dict[str, Any]) -> str:
    """The claim in one line."""
    steps = statistics.median(result["env_steps"] for result in evidence["seeds"])
    seconds = statistics.median(result["wall_time"] for result in evidence["seeds"])
    return (
        f"median {evidence['median']:,.0f}, worst {evidence['worst']:,.0f} of {len(evidence['seeds'])} seeds "
        f"after {steps / 1e6:,.1f}M steps, {seconds:,.0f} s"
    )


def mark(name: str, text: str) -> None:
    """Let the preset say what was seen."""
    path = presets.FOLDER / f"{name}.toml"
    values = tomllib.loads(path.read_text())
    options = values.pop("options")
    path.write_text(tomli_w.dumps({**values, "evidence": text, "options": options}))


def commit() -> str:
    """The commit that was measured, marked when the tree had changes."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def cpu() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.+)", info.read_text()) if info.exists() else []
    return names[0] if names else platform.processor()


def packages() -> dict[str, str]:
    """Versions that results depend on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("esker", "numpy", "torch", "gymnasium", "mujoco", "ale-py"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
