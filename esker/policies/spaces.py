"""Gymnasium spaces as JSON, so that a policy loads without the environment it was trained on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from esker.errors import UsageError

Space = gym.Space[Any]


def to_json(space: Space) -> dict[str, Any]:
    """A space as plain values. A kind that policies cannot use raises UsageError."""
    if isinstance(space, gym.spaces.Box):
        bounds = {"low": _bound(space.low), "high": _bound(space.high)}
        return {"kind": "Box", "shape": list(space.shape), "dtype": str(space.dtype), **bounds}
    if isinstance(space, gym.spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, gym.spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": np.asarray(space.start).tolist()}
    if isinstance(space, gym.spaces.MultiBinary):
        return {"kind": "MultiBinary", "n": list(space.shape) if len(space.shape) > 1 else space.shape[0]}
    if isinstance(space, gym.spaces.Tuple):
        return {"kind": "Tuple", "spaces": [to_json(part) for part in space.spaces]}
    if isinstance(space, gym.spaces.Dict):
        return {"kind": "Dict", "spaces": {name: to_json(part) for name, part in space.spaces.items()}}
    raise UsageError(f"spaces of kind {type(space).__name__} are not supported; wrap the environment first")


def described(about: Mapping[str, Any], name: str) -> Space:
    """The space of a run's description, `observation_space` or `action_space`. One that is none raises UsageError."""
    try:
        return from_json(about[name])
    except UsageError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError, OverflowError, RecursionError) as error:
        what = "is missing" if name not in about else f"is no space ({type(error).__name__})"
        raise UsageError(f"the run's about.json cannot be used: its {name} {what}") from error


def from_json(value: dict[str, Any]) -> Space:
    """The space that `to_json` described."""
    match value["kind"]:
        case "Box":
            shape, dtype = tuple(value["shape"]), np.dtype(value["dtype"])
            low, high = (np.broadcast_to(np.array(value[name], dtype=dtype), shape) for name in ("low", "high"))
            return gym.spaces.Box(low, high, shape, dtype.type)
        case "Discrete":
            return gym.spaces.Discrete(value["n"], start=value["start"])
        case "MultiDiscrete":
            return gym.spaces.MultiDiscrete(np.array(value["nvec"]), start=np.array(value["start"]))
        case "MultiBinary":
            return gym.spaces.MultiBinary(value["n"])
        case "Tuple":
            return gym.spaces.Tuple([from_json(part) for part in value["spaces"]])
        case "Dict":
            return gym.spaces.Dict({name: from_json(part) for name, part in value["spaces"].items()})
    raise UsageError(f"unknown kind of space {value['kind']!r}")


def _bound(bound: np.ndarray) -> Any:
    """One number where all are equal (JSON writes infinities as Infinity, which Python reads back)."""
    first = bound.reshape(-1)[:1]
    return first[0].item() if first.size and (bound == first[0]).all() else bound.tolist()
