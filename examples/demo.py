"""What `make demo` runs: CartPole-v1 to solved, evaluated over 100 episodes, and what to try next."""

import shutil
import sys
from pathlib import Path

from command import Command
from rich.console import Console

import esker
from esker.logs.observers import observer_for

SOLVED = 475.0


def main() -> int:
    """Train until the goal is reached, then judge the unperturbed policy on 100 fresh episodes."""
    console = Console()
    path = Path("runs/demo")
    shutil.rmtree(path, ignore_errors=True)
    run = esker.train("CartPole-v1", run_dir=str(path), observer=observer_for(console, quiet=False))
    result, _ = esker.evaluate(run.path, episodes=100)
    mean = result.summary()["mean"]
    solved = "solved" if mean >= SOLVED else "not solved"
    console.print(f"\n[bold]{solved}[/bold]: mean return {mean:.1f} over 100 evaluation episodes (solved means {SOLVED:g})")
    console.print(f"the run is in {run.path}\n\ntry next:")
    for command in (f"esker eval {run.path}", "esker train LunarLander-v3", "esker train --help"):
        console.print(f"  .venv/bin/{command}", highlight=False)
    return 0 if mean >= SOLVED else 1


if __name__ == "__main__":
    Command(__doc__).parse_args()
    sys.exit(main())
