"""Rollout efficiency: whole generations (update and commit included) against bare replays of the same episodes.

The raw rate is that of as many processes stepping the same episodes, from their recorded seeds and actions, in the
barest loop there is. The two are alternated in short slices, and the median of the ratios is reported.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import tempfile
import time
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, BinaryIO

import gymnasium as gym
import numpy as np

from esker.algorithms.loop import apply
from esker.api import configure
from esker.runs.assembly import build_state, build_task, describe, open_engine
from esker.runs.checkpoints import Snapshot
from esker.runs.folder import RunFolder
from esker.tools.bench import Measurement
from esker.worlds.environments import Environment, silence

WORKERS = 2
TURNS = 3  # generations and replays of one slice, taken in turns: on a shared machine neighbours in time are alike


@dataclass(frozen=True)
class Case:
    """An environment, its options, and the ratio it should reach."""

    env: str
    wanted: float
    options: dict[str, Any] = field(default_factory=dict)
    solved_first: bool = False

    def measure(self, quick: bool) -> list[Measurement]:
        """Alternate slices of esker and of bare replays."""
        slices = 2 if quick else 5
        with tempfile.TemporaryDirectory() as folder:
            ours, raw, steps = _alternate(self, Path(folder), slices)
        ratios = [r / o for o, r in zip(ours, raw, strict=True)]
        detail = {
            "esker steps/s": f"{steps / statistics.median(ours):,.0f}",
            "raw steps/s": f"{steps / statistics.median(raw):,.0f}",
            "slices": " ".join(f"{ratio:.2f}" for ratio in ratios),
        }
        return [Measurement(f"rollout/{self.env}", statistics.median(ratios), "", f"≥ {self.wanted}", detail)]


CASES = (
    Case("HalfCheetah-v5", 0.85, {"population": 80, "center_episodes": 2}),
    Case("Humanoid-v5", 0.90, {"population": 1000, "center_episodes": 2}),  # as many as RLlib's configuration of it
    Case("LunarLander-v3", 0.80, {"population": 200, "center_episodes": 2}),
    Case("CartPole-v1", 0.65, {"population": 100, "center_episodes": 2, "sigma": 0.01}, solved_first=True),
)


class Record(gym.Wrapper[Any, Any, Any, Any]):
    """Writes down the seed and the actions of every episode."""

    folder = ""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.seed = seed
        self.actions: list[Any] = []
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        self.actions.append(np.copy(action))
        result = self.env.step(action)
        if result[2] or result[3]:
            name = f"{self.seed}-{time.monotonic_ns()}.npy"  # the two members of a pair share their seed
            np.save(Path(self.folder) / name, np.array(self.actions))
        return result


def recording(env: str, folder: str) -> Any:
    """An environment that records; a factory that workers can import."""
    wrapped = Record(gym.make(env, disable_env_checker=True))
    wrapped.folder = folder
    return wrapped


def _alternate(case: Case, folder: Path, slices: int) -> tuple[list[float], list[float], int]:
    config, environment, _ = configure(case.env, case.options, preset=None)
    with silence():
        probe = environment.make()
        about = describe(probe)
    task = build_task(config, environment, about)
    state, table = build_state(config, task)
    if case.solved_first:
        state.restore(_solved(case.env, folder))
        state.strategy.sigma = config.sigma
    start = state.snapshot()
    recorder = Environment("esker.tools.bench.rollout:recording", kwargs={"env": case.env, "folder": str(folder)})
    with open_engine(replace(task, environment=recorder), WORKERS, table) as engine:
        engine.evaluate(state.job(), state.plan())
    run = RunFolder.create(folder / "run", config, about)
    ours: list[float] = []
    with open_engine(task, WORKERS, table) as engine, Replayers(case.env, folder) as replayers:
        raw = []
        for number in range(slices * TURNS + 1):  # the first turn warms both up
            state.restore(start)
            began = time.perf_counter()
            plan = state.plan()
            engine.evaluate(state.job(), plan)
            facts = state.facts(plan, 0.0)
            run.commit(facts)
            apply(run, state, facts)
            spent = time.perf_counter() - began
            replayed = replayers.replay()
            if number:
                ours.append(spent)
                raw.append(replayed)
        assert replayers.steps == int(facts.lengths.sum() + facts.center_lengths.sum())
    return _by_slice(ours), _by_slice(raw), replayers.steps


def _by_slice(seconds: list[float]) -> list[float]:
    """Mean seconds of the turns of each slice."""
    return [statistics.mean(seconds[at : at + TURNS]) for at in range(0, len(seconds), TURNS)]


def _solved(env: str, folder: Path) -> Snapshot:
    """The state of a run that solves the environment, observation statistics included."""
    from esker.api import train
    from esker.runs.loading import open_trained

    run = train(env, run_dir=str(folder / "solved"), quiet=True, hidden=(64, 64), workers=WORKERS)
    return open_trained(run.path, "best").snapshot


class Replayers:
    """As many processes as workers, each replaying its share of the recorded episodes when told to."""

    def __init__(self, env: str, folder: Path) -> None:
        context = multiprocessing.get_context("spawn")
        files = sorted(folder.glob("*.npy"), key=lambda path: (path.stat().st_size, path.name))
        self.steps = 0
        self.pipes: list[Connection] = []
        self.processes = []
        for share in range(WORKERS):
            ours, theirs = context.Pipe()
            names = [str(path) for path in files[share::WORKERS]]
            process = context.Process(target=_replay, args=(env, names, theirs), daemon=True)
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)
        self.steps = sum(int(pipe.recv()) for pipe in self.pipes)

    def replay(self) -> float:
        """Seconds until every process has replayed its episodes."""
        began = time.perf_counter()
        for pipe in self.pipes:
            pipe.send("go")
        for pipe in self.pipes:
            pipe.recv()
        return time.perf_counter() - began

    def __enter__(self) -> Replayers:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self.processes:
            process.kill()
            process.join()


def _replay(env_name: str, files: list[str], pipe: Connection) -> None:
    with silence():
        env = gym.make(env_name, disable_env_checker=True)
    discrete = isinstance(env.action_space, gym.spaces.Discrete)
    episodes = []
    for name in files:
        actions = np.load(name)
        episodes.append((int(Path(name).name.split("-")[0]), actions.tolist() if discrete else list(actions)))
    pipe.send(sum(len(actions) for _, actions in episodes))
    while pipe.recv():
        for seed, actions in episodes:
            env.reset(seed=seed)
            for action in actions:
                env.step(action)
        pipe.send("done")


def useful_steps(quick: bool) -> list[Measurement]:
    """Steps that belong to committed episodes ÷ steps the environments were given, for episodes that end early."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment("esker.tools.bench.rollout:counting", kwargs={"env": "Hopper-v5", "folder": folder})
        config, _, _ = configure("Hopper-v5", {"population": 100, "center_episodes": 2}, preset=None)
        with silence():
            about = describe(environment.make())
        task = build_task(config, environment, about)
        state, table = build_state(config, task)
        for path in Path(folder).iterdir():
            path.unlink()
        with open_engine(task, WORKERS, table) as engine:
            plan = state.plan()
            engine.evaluate(state.job(), plan)
        useful = sum(result.length for result in plan.results.values())
        taken = sum(path.stat().st_size for path in Path(folder).iterdir())
    detail = {"useful": f"{useful:,}", "taken": f"{taken:,}"}
    return [Measurement("useful-steps/Hopper-v5", useful / taken, "", "= 1.0", detail)]


class Count(gym.Wrapper[Any, Any, Any, Any]):
    """Adds one byte to a file of its own for every step."""

    file: BinaryIO

    def step(self, action: Any) -> Any:
        self.file.write(b"x")
        return self.env.step(action)


def counting(env: str, folder: str) -> Any:
    """An environment that counts every step it is given."""
    wrapped = Count(gym.make(env, disable_env_checker=True))
    wrapped.file = open(Path(folder) / str(time.monotonic_ns()), "ab", buffering=0)  # noqa: SIM115 - lives as long as it
    return wrapped


if __name__ == "__main__":
    print(json.dumps([str(m) for case in CASES for m in case.measure(quick=True)]))
