"""Processor time from a command to its end: python benchmarks/startup.py

Writes benchmarks/results/startup.json: the least of some repetitions, in seconds, of all processes of a command.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from evidence_machine import ROOT, commit, machine

TRAIN = "esker train CartPole-v1 --generations 1 --quiet --workers"
COMMANDS = {
    "`python -c 'import numpy, gymnasium'`": ["-c", "import numpy, gymnasium"],
    "`python -c 'import torch'`": ["-c", "import torch"],
    "`esker --help`": ["-m", "esker", "--help"],
    f"`{TRAIN} 0`": ["-m", *f"{TRAIN} 0".split()],
    f"`{TRAIN} 2`": ["-m", *f"{TRAIN} 2".split()],
}


def main() -> int:
    """Measure and store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--note", default="", help="what a reader should know")
    arguments = parser.parse_args()
    found = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
        "note": arguments.note,
        "command": "python benchmarks/startup.py",
        "seconds": {
            name: min(_seconds(command) for _ in range(arguments.repetitions)) for name, command in COMMANDS.items()
        },
    }
    (ROOT / "benchmarks" / "results" / "startup.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


def _seconds(command: list[str]) -> float:
    """User and system time of a command and of the processes it waited for."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        process = subprocess.Popen([sys.executable, *command], cwd=Path(folder), stdout=subprocess.DEVNULL, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
