"""Exporting a policy, and checking that the written files act as the policy does."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from esker.algorithms import registry
from esker.errors import RunError, UsageError, nearest
from esker.policies.policy import Policy
from esker.runs.files import refuse_links_in
from esker.runs.folder import is_checkpoint
from esker.runs.loading import LoadedCheckpoint, open_checkpoint, policy_of
from esker.runs.trust import Trust
from esker.tools.torch_policies import files
from esker.tools.torch_policies.networks import torch_network
from esker.worlds.atari import Atari, register_games
from esker.worlds.environments import Environment

OBSERVATIONS = 1000
EPISODE = 100  # a network with memory is reset after this many
TOLERANCE = 1e-5  # of continuous actions, relative to their size; discrete ones must be equal


@dataclass(frozen=True)
class Exported:
    """One file, and the largest difference of its actions from the policy's."""

    form: str
    path: Path
    difference: float


def export(
    path: Path, checkpoint: str, forms: Sequence[str], output: Path | None = None, trust: Trust = False
) -> tuple[list[Exported], list[str]]:
    """Write a checkpoint's policy in some forms, each read back and compared. Actions that differ raise RunError."""
    if not forms:
        raise UsageError(f"format names no file; expected some of {', '.join(files.FILES)}")
    for form in forms:
        if form not in files.FILES:
            raise UsageError(f"unknown format {form!r}{nearest(form, files.FILES)}; expected {', '.join(files.FILES)}")
        files.require(form)
    trained = open_checkpoint(path, checkpoint, trust)
    policy = policy_of(trained)
    folder = output or (Path("export") if is_checkpoint(path) else path / "export")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"output is {str(folder)!r}, a file; expected a folder")
    refuse_links_in(folder)
    folder.mkdir(parents=True, exist_ok=True)
    observations = sample_observations(policy)
    expected = own_actions(policy, observations)
    done = []
    for form in forms:
        target = folder / files.FILES[form]
        files.write(form, policy, target)
        found = actions_of(files.read(form, policy, target), policy, observations)
        done.append(Exported(form, target, compare(form, expected, found)))
    (folder / "policy.json").write_text(json.dumps(describe(trained, policy, done), indent=1) + "\n")
    return done, trained.notices


def sample_observations(policy: Policy, count: int = OBSERVATIONS) -> np.ndarray:
    """Observations such as the policy has seen: around its statistics, else drawn from the space."""
    rng = np.random.default_rng(0)
    space = policy.observation_space
    if len(policy.network.input_shape) > 1:
        return rng.integers(0, 256, (count, *policy.network.input_shape), dtype=np.uint8)
    if policy.normalizer is not None:
        drawn = (
            policy.normalizer.mean
            + 1.5 * rng.standard_normal((count, policy.network.inputs)) / policy.normalizer.inverse_std
        )
        return drawn.astype(np.float32)
    space.seed(0)
    return np.array([gym.spaces.utils.flatten(space, space.sample()) for _ in range(count)], dtype=np.float32)


def own_actions(policy: Policy, observations: np.ndarray) -> np.ndarray:
    """The policy's own actions, one observation at a time."""
    space = policy.observation_space
    if len(policy.network.input_shape) == 1:
        policy.observation_space = gym.spaces.Box(-np.inf, np.inf, observations.shape[1:])  # they are flat already
    actions: list[Any] = []
    for number, observation in enumerate(observations):
        if number % EPISODE == 0:
            policy.reset()
        actions.append(policy.act(observation))
    policy.observation_space = space
    return np.array(actions)


def actions_of(step: files.Step, policy: Policy, observations: np.ndarray) -> np.ndarray:
    """An exported policy's actions: in one batch if possible, else step by step with its state."""
    module = torch_network(policy.network, policy.parameters)
    if module.batched:
        return step(observations)[0]
    beginning = [part.numpy() for part in module.initial_state()]
    actions, state = [], beginning
    for number, observation in enumerate(observations):
        state = beginning if number % EPISODE == 0 else state
        action, *state = step(observation[None], *state)
        actions.append(action[0])
    return np.array(actions)


def compare(form: str, expected: np.ndarray, found: np.ndarray) -> float:
    """The largest difference between actions; too large a one raises RunError."""
    if expected.shape != found.shape:
        raise RunError(f"{form}: actions have shape {found.shape[1:]}; the policy's have {expected.shape[1:]}")
    difference = np.abs(expected.astype(np.float64) - found.astype(np.float64))
    allowed = TOLERANCE * np.maximum(1.0, np.abs(expected)) if expected.dtype.kind == "f" else np.zeros_like(difference)
    wrong = int((difference > allowed).reshape(len(expected), -1).any(axis=1).sum())
    if wrong:
        raise RunError(
            f"{form}: {wrong} of {len(expected)} actions differ from the policy's, by up to {difference.max():.3g}"
        )
    return float(difference.max())


def describe(trained: LoadedCheckpoint, policy: Policy, done: Sequence[Exported]) -> dict[str, Any]:
    """What is needed to use the files without esker."""
    module = torch_network(policy.network, policy.parameters)
    image = len(policy.network.input_shape) > 1
    return {
        "env": trained.config.env,
        "checkpoint": trained.snapshot.generation,
        "observation": {
            "shape": ["batch" if module.batched else 1, *policy.network.input_shape],
            "dtype": "uint8" if image else "float32",
            "space": _finite(trained.about["observation_space"]),
        },
        "action": {"space": _finite(trained.about["action_space"])},
        **of_game(trained.config),
        "state": [list(part.shape) for part in module.initial_state()],
        "files": {one.path.name: {"format": one.form, "largest_difference": one.difference} for one in done},
        "verified_on": OBSERVATIONS,
    }


def of_game(config: Any) -> dict[str, Any]:
    """How a game's frames become observations and what its actions are, by the names of the options; else nothing."""
    environment = Environment(config.env, **registry.find(config.algo).environment(config))
    atari = environment.atari
    if atari is None or not environment.is_atari:
        return {}
    width, height = atari.size
    shown = {"crop": atari.crop or None, "screen_size": height, "screen_width": width, "frame_stack": atari.frame_stack}
    return {"preprocessing": {"frame_skip": atari.frame_skip, **shown, "actions": _actions(environment, atari)}}


def _actions(environment: Environment, atari: Atari) -> list[str] | None:
    """A policy's actions by ALE's names, in its order. Without ale-py, those that were asked for, if any were."""
    register_games()
    if environment.name in gym.registry:  # nothing is imported
        bare = Environment(environment.name, kwargs=environment.kwargs)
        with contextlib.suppress(UsageError), contextlib.closing(bare.make()) as env:
            game: Any = env.unwrapped
            meanings = game.get_action_meanings()
            return [meanings[number] for number in atari.chosen(meanings)]
    return [name.upper() for name in atari.actions] or None


def _finite(value: Any) -> Any:
    """JSON has no infinities: an infinite bound becomes null."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and math.isinf(value) else value
