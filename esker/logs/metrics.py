"""Rows of the journal under the names that TensorBoard and W&B users of CleanRL and Stable-Baselines3 expect."""

from __future__ import annotations

from typing import Any

NAMES: dict[str, tuple[str, ...]] = {
    "env_steps": ("time/total_timesteps",),
    "generation": ("time/iterations",),
    "wall_time": ("time/time_elapsed",),
    "episodes": ("time/episodes",),
    "steps_per_second": ("charts/SPS", "time/fps"),
    "return_mean": ("charts/episodic_return", "rollout/ep_rew_mean"),
    "episode_length_mean": ("charts/episodic_length", "rollout/ep_len_mean"),
    "center_return": ("eval/mean_reward", "es/center_return"),
    "best_return": ("eval/best_mean_reward",),
    "return_std": ("es/population_std",),
    "lr": ("charts/learning_rate",),
}
ES = frozenset(
    {
        "return_max",
        "return_min",
        "center_rank",
        "members",
        "failed_members",
        "episode_cap",
        "sigma",
        "gradient_norm",
        "update_ratio",
        "weight_entropy",
        "goal_streak",
        "discarded_steps",
        "start",
    }
)
STEPS = "time/total_timesteps"
FITNESS = "es/fitness"


def metrics(row: dict[str, Any], algo: str) -> dict[str, float]:
    """The numbers of a row by name. What only one algorithm knows goes under that algorithm's name."""
    named: dict[str, float] = {}
    for key, value in row.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        for name in NAMES.get(key) or (f"es/{key}" if key in ES else f"{algo}/{key}",):
            named[name] = value
    return named
