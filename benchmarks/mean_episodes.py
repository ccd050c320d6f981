"""AES-RL's comparison with the mean: how many episodes are worth it, at equal simulated steps?

    python benchmarks/mean_episodes.py HalfCheetah-v5 --steps 600000 [--seeds 0 1 2] [--episodes 1 2 5] [--json]

Each run stops at the same number of simulated steps, the mean's episodes among them; fewer episodes for the mean leave
more for individuals. Reported: the best checkpoint's mean over fresh episodes, and the mean of the centre's returns over
the last quarter of the run, for every seed.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

import esker


def curve(env: str, seed: int, episodes: int, steps: int, folder: Path, more: dict) -> dict[str, object]:
    """One run: simulated steps, training steps and returns of the centre, and what its best checkpoint scores."""
    run = esker.train(
        env,
        algo="aes-rl",
        seed=seed,
        mean_episodes=episodes,
        center_episodes=5,
        steps=steps,
        quiet=True,
        run_dir=str(folder / f"{episodes}-{seed}"),
        **more,
    )
    history = run.history
    late = [row["center_return"] for row in history if row["env_steps"] > 0.75 * steps]
    best, _ = esker.evaluate(run.path, episodes=20, checkpoint="best")
    return {
        "seed": seed,
        "training_steps": history[-1]["training_steps"],
        "env_steps": [row["env_steps"] for row in history],
        "center_return": [row["center_return"] for row in history],
        "late": float(np.mean(late)),
        "best": float(np.mean(best.returns)),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("--steps", type=int, required=True, help="simulated steps of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--episodes", type=int, nargs="+", default=[1, 2, 5])
    parser.add_argument("--options", default="{}", help="JSON object of further options of aes-rl")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for many in options.episodes:
            more = json.loads(options.options)
            runs = [curve(options.env, seed, many, options.steps, Path(folder), more) for seed in options.seeds]
            found[many] = runs
            if not options.json:
                best, late = ([f"{run[name]:,.0f}" for run in runs] for name in ("best", "late"))
                trained = [f"{run['training_steps']:,}" for run in runs]
                print(f"mean_episodes {many}: best {best}, last quarter {late}, training steps {trained}", flush=True)
    if options.json:
        print(json.dumps({"env": options.env, "steps": options.steps, "options": options.options, "runs": found}))


if __name__ == "__main__":
    main()
