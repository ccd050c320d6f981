"""Is the best checkpoint the best? Evaluate many checkpoints of runs over the same episodes, and compare.

    python benchmarks/best.py runs/LunarLander-v3/es-s0 runs/Hopper-v5/es-s0 --every 10 --episodes 100 -o best.json

Evaluates every kept checkpoint, or with `--every N` every N-th generation (recomputed from the run's facts), and the one
that the run chose as `best`. Prints the chosen one's mean beside the highest mean; the highest of many noisy means is
itself a lucky one, so the ratio is pessimistic. The same command again evaluates only what is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from evidence_machine import commit, machine

from esker.runs.checkpoints import generations
from esker.runs.folder import RunFolder
from esker.runs.loading import evaluate
from esker.runs.pointers import wanted

SEED = 54321
ENOUGH = 0.97  # of the highest mean


def main() -> int:
    """Evaluate, store, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--every", type=int, help="every N-th generation (default: the checkpoints that were kept)")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True, help="JSON file; what it holds is not evaluated again")
    arguments = parser.parse_args()
    stored = json.loads(arguments.output.read_text()) if arguments.output.exists() else {"runs": []}
    stored |= {"commit": commit(), "machine": machine()}
    for path in arguments.runs:
        entry = entry_of(stored["runs"], RunFolder.open(path), arguments.episodes)
        for generation in wanted_generations(RunFolder.open(path), arguments.every, entry["chosen"]):
            if str(generation) not in entry["means"]:
                found = evaluate(
                    path, checkpoint=generation, episodes=arguments.episodes, seed=SEED, workers=arguments.workers
                )
                entry["means"][str(generation)] = round(found.mean, 2)
                entry["spreads"][str(generation)] = round(found.std, 2)
                arguments.output.write_text(json.dumps(stored, indent=1) + "\n")
        print(sentence(entry), flush=True)
    return int(not all(ratio(entry) >= ENOUGH for entry in stored["runs"]))


def entry_of(entries: list[dict[str, Any]], folder: RunFolder, episodes: int) -> dict[str, Any]:
    """What is stored of a run, new where there is nothing of the same kind."""
    values, rows = folder.values(), folder.rows()
    chosen, _ = wanted(folder, "best", folder.committed())
    known = {
        "run": folder.identity,
        "env": values["env"],
        "algo": values["algo"],
        "seed": values["seed"],
        "center_episodes": values["center_episodes"],
        "generations": len(rows),
        "env_steps": rows[-1]["env_steps"],
        "episodes": episodes,
        "chosen": chosen,
    }
    for entry in entries:
        if {name: entry[name] for name in known} == known:
            return entry
    entries.append({**known, "means": {}, "spreads": {}})
    return entries[-1]


def wanted_generations(folder: RunFolder, every: int | None, chosen: int) -> list[int]:
    """The generations that are compared; the chosen one first."""
    last = folder.committed()
    others = generations(folder.checkpoints) if every is None else [*range(0, last, every), last]
    return list(dict.fromkeys([chosen, *others]))


def ratio(entry: dict[str, Any]) -> float:
    """The chosen mean as a share of the highest, measured from the lowest where returns are negative."""
    means = entry["means"]
    floor = min(0.0, *means.values())
    return float((means[str(entry["chosen"])] - floor) / ((max(means.values()) - floor) or 1.0))


def sentence(entry: dict[str, Any]) -> str:
    """The outcome in one line."""
    means = entry["means"]
    highest, chosen = max(means, key=means.__getitem__), str(entry["chosen"])
    return (
        f"{entry['env']}, seed {entry['seed']}: chosen {chosen} has {means[chosen]:,.1f}, the highest of "
        f"{len(means)} checkpoints {highest} has {means[highest]:,.1f}: {ratio(entry):.3f}"
    )


if __name__ == "__main__":
    sys.exit(main())
