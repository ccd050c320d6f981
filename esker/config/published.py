"""Settings that the AES-RL paper (Lee et al. 2020) states for an environment and the algorithms' defaults cannot."""

from __future__ import annotations

from typing import Any

# The scale of returns with which its rules move the mean, by environment; without its version.
SCALES = {"HalfCheetah": 2000.0, "Hopper": 600.0, "Walker2d": 800.0, "Ant": 960.0, "Humanoid": 960.0, "Swimmer": 48.0}
NETWORKS: dict[str, dict[str, Any]] = {"Humanoid": {"hidden": (256, 256), "lr": 0.0003}}


def published(env: str, algo: str) -> tuple[dict[str, Any], list[str]]:
    """The options for an environment that has no preset of this algorithm, and a notice of them."""
    name = env.partition("-v")[0]
    if algo != "aes-rl" or name not in SCALES:
        return {}, []
    options = {"mean_update_param": SCALES[name], **NETWORKS.get(name, {})}
    shown = ", ".join(f"{key} = {value}" for key, value in options.items())
    return options, [f"published for {name} (Lee et al. 2020): {shown}"]
