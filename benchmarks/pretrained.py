"""Ship a preset's trained policy: python benchmarks/pretrained.py PRESET RUN...

Of several runs the one whose best centre had the highest return is taken. Its best checkpoint, without the optimizer,
goes to esker/presets/PRESET/ with what acting needs and results.json: 100 episodes of `esker eval` (seed 0), and
how it was trained.
Then `esker render PRESET`, `esker eval PRESET` and `esker.load("PRESET")` use it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from evidence_machine import commit, machine

import esker
from esker import presets
from esker.runs.groups import as_written
from esker.runs.loading import LoadedCheckpoint, evaluate, open_checkpoint
from esker.tools.card import results_of, write_weights


def main() -> int:
    """Choose, evaluate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", help="as halfcheetah/ars")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders of that preset")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    preset = presets.find(arguments.preset, "es")
    run = max(map(esker.Run, arguments.runs), key=lambda run: run.best_return or float("-inf"))
    check(preset, run.config)
    trained = open_checkpoint(run.path)
    evaluation, _ = evaluate(run.path, episodes=arguments.episodes, workers=arguments.workers)
    folder = presets.FOLDER / preset.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_weights(trained, folder)
    results = results_of(evaluation.summary()) | origin(preset, trained)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{preset.name}: mean {results['mean_reward']:,.1f} over {arguments.episodes} episodes, {size / 1024:,.0f} KiB")
    return 0


def check(preset: presets.Preset, config: Any) -> None:
    """Refuse a run of other options than the preset's; where it stopped does not matter."""
    free = {"steps", "generations", "goal", "patience"}
    wanted = {"env": preset.env, "algo": preset.algo, **preset.options}
    plain = {name: as_written(getattr(config, name, None)) for name in wanted}
    if other := [name for name in wanted.keys() - free if plain[name] != wanted[name]]:
        raise SystemExit(f"this run is not one of {preset.name}: {', '.join(sorted(other))} differ")


def origin(preset: presets.Preset, trained: LoadedCheckpoint) -> dict[str, Any]:
    """How the policy was made."""
    return {
        "preset": preset.name,
        "env": preset.env,
        "command": f"esker train {preset.env} --preset {preset.name} --seed {trained.config.seed}",
        "env_steps": trained.snapshot.values["env_steps"],
        "parameters": int(trained.snapshot.arrays["center"].size),
        "commit": commit(),
        "machine": machine(),
    }


if __name__ == "__main__":
    sys.exit(main())
