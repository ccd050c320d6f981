"""Store what `esker bench` measures of rollouts or scaling: python benchmarks/rollout.py [--only scaling --workers 1,2,4]

Writes benchmarks/results/rollout.json or scaling.json, from which docs/performance.md is made. Take it on a machine that
does nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from evidence_machine import ROOT, commit, machine


def main() -> int:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--only", default="rollout", help="as of esker bench (default: rollout)")
    parser.add_argument("--note", default="", help="what a reader should know, as: two cores that other work also used")
    parser.add_argument("--workers", help="as of esker bench, with --only scaling")
    parser.add_argument("--out", type=Path, help="where to store (default: benchmarks/results)")
    arguments = parser.parse_args()
    workers = ["--workers", arguments.workers] if arguments.workers else []
    command = ["bench", "--only", arguments.only, *workers, "--json", *(["--quick"] if arguments.quick else [])]
    done = subprocess.run([sys.executable, "-m", "esker", *command], stdout=subprocess.PIPE, text=True, check=True)
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "note": arguments.note,
        "command": " ".join(["esker", *command]),
        "measurements": json.loads(done.stdout),
    }
    place = arguments.out or ROOT / "benchmarks" / "results" / f"{arguments.only.split('/')[0]}.json"
    place.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
