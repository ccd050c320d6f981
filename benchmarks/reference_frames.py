"""Virtual batch normalisation: does learning suffer from a smaller reference batch?

    python benchmarks/reference_frames.py [--frames 32 128] [--seeds 0 1 2] [--generations 40] [--json]

A Nature CNN is trained to catch falling balls from pixels, a game whose episodes have 36 steps where Pong's have 800.
Reported for every number of reference frames and every seed: the centre's return over the last quarter of the
generations, and the seconds that a generation took.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import mean, median
from typing import Any

import gymnasium as gym
import numpy as np

import esker

CELLS, PIXELS, BALLS, SHOWN = 7, 12, 6, 4  # a board of 7 × 7 cells of 12 pixels, six balls an episode, four frames seen


class Catch(gym.Env):
    """A ball falls a cell a step; a paddle of two cells moves left, stays or moves right. 1 for a catch, -1 for a miss."""

    def __init__(self) -> None:
        side = CELLS * PIXELS
        self.observation_space = gym.spaces.Box(0, 255, (SHOWN, side, side), np.uint8)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.paddle, self.left = CELLS // 2, BALLS
        self.frames = np.zeros(self.observation_space.shape, dtype=np.uint8)
        self._drop()
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.paddle = min(max(self.paddle + int(action) - 1, 0), CELLS - 2)
        self.row += 1
        reward = 0.0
        if self.row == CELLS - 1:
            reward = 1.0 if self.paddle <= self.column <= self.paddle + 1 else -1.0
            self.left -= 1
            self._drop()
        return self._see(), reward, self.left == 0, False, {}

    def _drop(self) -> None:
        self.row, self.column = 0, int(self.np_random.integers(CELLS))

    def _see(self) -> Any:
        board = np.zeros((CELLS, CELLS), dtype=np.uint8)
        board[self.row, self.column] = 255
        board[-1, self.paddle : self.paddle + 2] = 160
        self.frames = np.roll(self.frames, -1, axis=0)
        self.frames[-1] = np.kron(board, np.ones((PIXELS, PIXELS), dtype=np.uint8))
        return self.frames.copy()


def learn(frames: int, seed: int, generations: int, folder: Path) -> dict[str, Any]:
    """One run's curve."""
    run = esker.train(
        "reference_frames:Catch",
        network="nature-cnn",
        reference_frames=frames,
        population=40,
        sigma=0.05,
        lr=0.02,
        center_episodes=20,
        generations=generations,
        seed=seed,
        workers=1,
        quiet=True,
        run_dir=str(folder / f"{frames}-{seed}"),
    )
    curve = [row["center_return"] for row in run.history]
    seconds = np.diff([row["wall_time"] for row in run.history])
    return {
        "seed": seed,
        "late": mean(curve[-max(generations // 4, 1) :]),
        "seconds": median(seconds),
        "center_return": curve,
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    found: dict[int, list[dict[str, Any]]] = {frames: [] for frames in options.frames}
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds:  # in turns, so that a busy hour is everyone's
            for frames in options.frames:
                run = learn(frames, seed, options.generations, Path(folder))
                found[frames].append(run)
                if not options.json:
                    print(
                        f"{frames} frames, seed {seed}: {run['late']:.2f} of {BALLS}, {run['seconds']:.1f} s a generation",
                        flush=True,
                    )
    if options.json:
        print(json.dumps({"generations": options.generations, "reference_frames": found}, indent=1))


if __name__ == "__main__":
    main()
