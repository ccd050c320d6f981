"""Bare replays: the seeds and actions of a generation's episodes, recorded once and stepped again by `env.step` alone."""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from esker.worlds.environments import Environment, silence


def recorder(env: str, folder: Path) -> Environment:
    """The environment that writes its episodes into a folder; whatever wraps it takes Gymnasium's step."""
    return Environment("esker.bench.replay:recording", kwargs={"env": env, "folder": str(folder)})


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


class Replayers:
    """Some processes, each replaying its share of the recorded episodes when told to."""

    def __init__(self, env: str, folder: Path, workers: int) -> None:
        context = multiprocessing.get_context("spawn")
        files = sorted(folder.glob("*.npy"), key=lambda path: (path.stat().st_size, path.name))
        self.steps = 0
        self.pipes: list[Connection] = []
        self.processes = []
        for share in range(workers):
            ours, theirs = context.Pipe()
            names = [str(path) for path in files[share::workers]]
            process = context.Process(target=_replay, args=(env, names, theirs), daemon=True)
            process.start()
            self.pipes.append(ours)
            self.processes.append(process)
        self.steps = sum(int(pipe.recv()) for pipe in self.pipes)

    @property
    def pids(self) -> list[int]:
        """The processes."""
        return [process.pid for process in self.processes if process.pid is not None]

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


def cpu_seconds(pids: list[int]) -> float:
    """Processor time of some processes; nan where the system does not tell."""
    try:
        fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    except OSError:
        return float("nan")
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")
