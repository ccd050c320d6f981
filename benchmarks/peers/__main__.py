"""esker beside its peers: `make bench-peers`, or `python benchmarks/peers --peers .venv-peers/bin/python`.

Peers live in an environment of their own (`benchmarks/peers/requirements.txt`). Contenders take turns, so that whatever
else the machine does falls on all of them; medians over the rounds are written to `benchmarks/results/peers.json` and
printed; `python docs/make_evidence.py` puts them into README.md and docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from evidence_machine import commit, cpu
from tables import SOLVERS, UPDATERS, as_markdown

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "peers.json"
ENVIRONMENTS = ("HalfCheetah-v5", "CartPole-v1")
STEPPERS = ("esker-steps", "evotorch-steps", "evotorch-vec-steps", "minimal-steps", "raw-steps")
GRID = ((100, 10_000), (1000, 10_000), (100, 1_000_000), (1000, 100_000), (1000, 1_000_000), (10_000, 1_000_000))
SEEDS = (range(5), range(5, 10))  # of the solvers, in turns
MATRIX_BYTES = 4 << 30  # populations larger than this are not tried where they are matrices
# EvoTorch's Ray joins no cluster that happens to be on this machine, and its actors have the priority of everybody else:
# by default Ray gives them the lowest but four, and on a machine with other work they hardly run.
RAY = {"RAY_ADDRESS": "local", "RAY_worker_niceness": "0"}
PACKAGES = ("evotorch", "evosax", "evox", "jax", "torch", "gymnasium", "mujoco", "numpy")


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="the interpreter of the peers' environment")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to store (default: benchmarks/results/peers.json)")
    parser.add_argument("--note", default="", help="what a reader should know, as: two cores that other work also used")
    parser.add_argument("--only", choices=("steps", "updates", "solve"), help="leave the other stored results as they are")
    arguments = parser.parse_args()
    found: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if arguments.only in (None, "steps"):
        found |= _heading(arguments)
        found["steps"] = {env: _steps(env, arguments.peers, arguments.rounds) for env in ENVIRONMENTS}
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.only in (None, "updates"):
        found["updates_heading"] = _heading(arguments)
        found["updates"] = [_updates(*size, arguments.peers) for size in GRID]
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.only in (None, "solve"):
        found["solve"] = _heading(arguments) | {"seeds": _solve(arguments.peers)}
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(as_markdown(found))


def _heading(arguments: argparse.Namespace) -> dict[str, Any]:
    """Where, when and with what it is measured."""
    return {
        "machine": f"{os.cpu_count()} cores, {cpu()}",
        "commit": commit(),
        "note": arguments.note,
        "date": time.strftime("%Y-%m-%d"),
        "versions": {"esker": metadata.version("esker"), **_versions(arguments.peers)},
    }


def _steps(env: str, peers: str, rounds: int) -> dict[str, Any]:
    """Steps per second (median), steps per episode and megabytes of every contender, in turns."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in STEPPERS}
    for _ in range(rounds):
        for name, done in runs.items():
            result = _run("contenders.py", name, env, python=sys.executable if name.startswith("esker") else peers)
            if result is not None:
                done.append(result)
    return {name: _summary(done) for name, done in runs.items() if done}


def _summary(done: list[dict[str, float]]) -> dict[str, Any]:
    rates = [result["steps"] / result["seconds"] for result in done]
    return {"steps_per_second": statistics.median(rates), "rounds": rates, "pss_mb": max(r["pss"] for r in done)}


def _updates(population: int, dimension: int, peers: str) -> dict[str, Any]:
    """Seconds of one ask and tell; None for what does not fit or does not run."""
    seconds: dict[str, float | None] = {}
    for name in UPDATERS:
        ours = name.startswith("esker")
        fits = ours or 4 * population * dimension <= MATRIX_BYTES
        python = sys.executable if ours else peers
        result = _run("updates.py", name, str(population), str(dimension), python=python) if fits else None
        seconds[name] = result["seconds"] if result else None
    return {"population": population, "dimension": dimension, "seconds": seconds}


def _solve(peers: str) -> dict[str, list[dict[str, Any]]]:
    """Every solver's seeds, in turns of five; what fails is missing."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in SOLVERS}
    for seeds in SEEDS:
        for name, done in runs.items():
            python = sys.executable if name == "esker" else peers
            done += _run("solve.py", name, *map(str, seeds), python=python) or []
    return runs


def _run(script: str, *arguments: str, python: str) -> Any:
    """The JSON that a contender prints last; None, with its last words on stderr, where it fails."""
    print(f"measuring {' '.join(arguments)} …", file=sys.stderr)
    done = subprocess.run([python, str(HERE / script), *arguments], capture_output=True, text=True, env=os.environ | RAY)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        print(f"  failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])


def _versions(python: str) -> dict[str, str]:
    program = f"import importlib.metadata as m; print({{n: m.version(n) for n in {PACKAGES!r}}})"
    text = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout
    return dict(json.loads(text.replace("'", '"')))


if __name__ == "__main__":
    main()
