"""Black-box functions: esker's strategies beside EvoTorch's and evosax's, as ratios within one run.

    python benchmarks/functions.py                    # makes .venv-peers with EvoTorch and evosax when there is none
    python benchmarks/functions.py --only time        # seconds per generation; or: --only evaluations

Every system runs on one core, in its own process; they take turns. Times are processor seconds.
Writes benchmarks/results/functions.json and prints it as tables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers"
RESULTS = ROOT / "benchmarks/results/functions.json"
VERSIONS = {"evotorch": "0.6.1", "evosax": "0.3.2"}
SYSTEMS = ("esker", *VERSIONS)
POPULATION = {10: 20, 100: 50, 1000: 100, 100_000: 100}
STRATEGIES = ("pgpe", "snes", "sep-cma", "cma")
FUNCTIONS = ("sphere", "ellipsoid", "rosenbrock", "rastrigin")
SHARES = {10: [1e-1, 1e-2, 1e-4, 1e-6], 100: [1e-1, 1e-2, 1e-4], 1000: [0.5, 0.1], 100_000: [0.995]}
GENERATIONS = {10: 1000, 100: 1500, 1000: 1500, 100_000: 200}
SEEDS = {10: (0, 1, 2), 100: (0,), 1000: (0,), 100_000: (0,)}
ROUNDS = 3


def peers() -> Path:
    """The Python of an environment that has the other systems; made on the first run."""
    python = PEERS / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        wanted = [f"{name}=={version}" for name, version in VERSIONS.items()]
        subprocess.run([python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", *wanted], check=True)
    return python


class System:
    """One system's process, which answers one case at a time."""

    def __init__(self, name: str, python: Path | str) -> None:
        command = [str(python), str(ROOT / "benchmarks/function_systems.py"), name]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
        self.name, self.errors = name, tempfile.TemporaryFile("w+")  # noqa: SIM115  # read when the process has ended
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)

    def ask(self, **case: Any) -> dict[str, Any]:
        """Send a case and wait for its result."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.errors.seek(0)
            raise SystemExit(f"{self.name} ended with {self.process.wait()} in {case}:\n{self.errors.read()[-2000:]}")
        return json.loads(line)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def cases() -> list[tuple[str, int]]:
    """Strategies and dimensions; a full covariance of 100,000 parameters does not fit into memory."""
    return [(strategy, d) for d in POPULATION for strategy in STRATEGIES if strategy != "cma" or d <= 1000]


def times(systems: dict[str, System]) -> list[dict[str, Any]]:
    """Processor seconds per generation on the sphere (ask, evaluate, tell): the least disturbed of a few rounds."""
    rows = []
    for strategy, d in cases():
        case = {"measure": "time", "function": "sphere", "strategy": strategy, "dimension": d, "seconds": 0.4}
        case |= {"population": POPULATION[d], "seed": 0}
        rounds: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(ROUNDS):
            for name, system in systems.items():
                rounds[name].append(system.ask(**case)["seconds"])
        best = {name: min(values) for name, values in rounds.items()}
        peer = min((name for name in best if name != "esker"), key=lambda name: best[name])
        row = {"strategy": strategy, "dimension": d, "population": POPULATION[d], "seconds": best, "rounds": rounds}
        rows.append({**row, "better_peer": peer, "times_as_fast": best[peer] / best["esker"]})
        parts = "  ".join(f"{name} {seconds * 1e3:10.3f} ms" for name, seconds in best.items())
        print(f"{strategy:8} d={d:<7} {parts}  esker {rows[-1]['times_as_fast']:.2f} times as fast as {peer}", flush=True)
    return rows


def evaluations(systems: dict[str, System], seconds: float, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Evaluations until the best member is below a share of the start's value: the median over seeds; None: not reached."""
    done = {(row["strategy"], row["dimension"], row["function"]) for row in known}
    for strategy, d in cases():
        for function in FUNCTIONS if d < 100_000 else FUNCTIONS[:1]:
            if (strategy, d, function) in done:
                continue
            case = {"measure": "evaluations", "function": function, "strategy": strategy, "dimension": d}
            case |= {"population": POPULATION[d], "shares": SHARES[d], "seconds": seconds}
            case["evaluations"] = GENERATIONS[d] * POPULATION[d]
            runs = {name: [system.ask(**case, seed=seed) for seed in SEEDS[d]] for name, system in systems.items()}
            found = {name: {str(share): _median(some, share) for share in SHARES[d]} for name, some in runs.items()}
            parts = "  ".join(f"{name} {list(values.values())}" for name, values in found.items())
            print(f"{strategy:8} d={d:<7} {function:10} to {SHARES[d]}: {parts}", flush=True)
            yield {"strategy": strategy, "dimension": d, "function": function, "evaluations": found, "runs": runs}


def _median(runs: list[dict[str, Any]], share: float) -> float | None:
    """The median over runs, counting those that did not arrive as the longest; None if it is one of them."""
    reached = sorted(run["reached"][str(share)] or float("inf") for run in runs)
    middle = statistics.median_high(reached)
    return None if middle == float("inf") else middle


def main() -> None:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("time", "evaluations"))
    parser.add_argument("--seconds", type=float, default=20.0, help="processor seconds at most, for one run to a target")
    parser.add_argument("--again", action="store_true", help="measure evaluations anew instead of completing those stored")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    python = peers()
    systems = {name: System(name, sys.executable if name == "esker" else python) for name in SYSTEMS}
    known = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    about = {"date": time.strftime("%Y-%m-%d"), "machine": f"{platform.machine()}, one of {os.cpu_count()} cores each"}
    found = {**known, **about, "versions": VERSIONS, "command": "python benchmarks/functions.py"}
    if arguments.only != "evaluations":
        found["times"] = times(systems)
    if arguments.only != "time":
        rows = found["to_target"] = [] if arguments.again else found.get("to_target", [])
        for row in evaluations(systems, arguments.seconds, list(rows)):
            rows.append(row)
            arguments.output.write_text(json.dumps(found, indent=1) + "\n")
    for system in systems.values():
        system.close()
    arguments.output.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
