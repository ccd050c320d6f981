"""What a run began with: the environment's spaces, versions, and the numeric fingerprint that its bits depend on."""

from __future__ import annotations

import platform
import time
from importlib.metadata import version
from typing import Any

import gymnasium as gym
import numpy as np

from esker.config.device import check_device, device_name
from esker.errors import UsageError
from esker.noise.fingerprint import fingerprint
from esker.policies import spaces
from esker.runs.folder import RunFolder
from esker.worlds.environments import Env, Flattened


def describe(env: Env) -> dict[str, Any]:
    """Spaces, versions and fingerprint of a run that begins now."""
    from esker import __version__

    raw = env.env if isinstance(env, Flattened) else env
    return {
        "observation_space": spaces.to_json(raw.observation_space),
        "action_space": spaces.to_json(env.action_space),
        "fingerprint": fingerprint(env),
        "started": time.time(),
        "versions": {
            "esker": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": version("torch"),  # not imported: the first look at an environment may be timed
            "gymnasium": gym.__version__,
        },
    }


def check_fingerprint(folder: RunFolder, env: Env, inexact: bool) -> list[str]:
    """Refuse a machine that computes other bits than the run began with, unless told to continue."""
    then, now = folder.about().get("fingerprint"), fingerprint(env)
    if then == now:
        return []
    text = f"this machine computes other bits than the one the run began on (numeric fingerprint {now}, then {then})"
    if not inexact:
        raise UsageError(f"{text}; to continue without bit-identity, add --inexact")
    return [f"{text}: continuing, not bit-identically"]


def compare_device(folder: RunFolder, config: Any) -> list[str]:
    """A notice if a run continues on another device than it began on. One that is not there raises UsageError."""
    if not getattr(config, "on_device", False):
        return []
    check_device(config.device)
    then, now = folder.about().get("device"), device_name(config.device)
    return [] if then == now else [f"the run began on {then} and continues on {now}, not bit-identically"]
