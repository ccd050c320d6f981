"""Thousands of schedules of a simulated cluster: no committed generation lost, no differing bit, one committer per epoch.

`python tests/faults/simulate.py --schedules 10000`, or `--seed N` for one of them with everything that happened in it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "simulation"))

from sim_schedule import Outcome, installed, reproduce, simulate

SHOW_EVERY = 10.0  # seconds


def main() -> int:
    """Returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="how many, from --first on")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only this one, with its trace")
    arguments = parser.parse_args()
    with installed():
        if arguments.seed is not None:
            outcome = simulate(arguments.seed)
            print("\n".join([*outcome.trace, f"faults: {outcome.faults}", f"wrong: {outcome.problems}"]))
            return int(bool(outcome.problems))
        return _many(range(arguments.first, arguments.first + arguments.schedules))


def _many(seeds: range) -> int:
    wrong: list[Outcome] = []
    faults: Counter[str] = Counter()
    began = shown = time.monotonic()
    for done, seed in enumerate(seeds, 1):
        outcome = simulate(seed)
        faults.update(fault.split(maxsplit=1)[1].rpartition(" ")[0] for fault in outcome.faults)
        faults["killed at a step"] += sum("is killed at its step" in line for line in outcome.trace)
        if outcome.problems:
            wrong.append(outcome)
            print(reproduce(outcome), flush=True)
        if time.monotonic() - shown > SHOW_EVERY or done == len(seeds):
            shown = time.monotonic()
            print(f"{done:,} of {len(seeds):,} schedules in {shown - began:.0f} s, {len(wrong)} wrong", flush=True)
    print("faults: " + ", ".join(f"{count:,} {name}" for name, count in faults.most_common()))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
