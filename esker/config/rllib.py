"""RLlib's configuration keys, translated into esker's with a notice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.errors import UsageError

RENAMED = {
    "num_workers": "workers",
    "episodes_per_batch": "population",
    "train_batch_size": "min_steps",
    "noise_stdev": "sigma",
    "stepsize": "lr",
    "noise_size": "table_size",
    "action_noise_std": "action_noise",
}
RLLIB_KEYS = frozenset({*RENAMED, "l2_coeff", "eval_prob", "observation_filter", "report_length"})
RLLIB_SIGMA = 0.02


def translate(values: Mapping[str, Any], sigma: float | None = None) -> tuple[dict[str, Any], list[str]]:
    """esker's values for a mapping that may hold RLlib's keys, and a notice for each that was translated.

    `sigma` is the scale that an L2 coefficient is divided by where the mapping does not say it: RLlib's gradient has
    no 1/σ, esker's has. A value that RLlib itself would not take raises UsageError.
    """
    result = {name: value for name, value in values.items() if name not in RLLIB_KEYS}
    notices = []
    for name, value in values.items():
        if name in RENAMED:
            result[RENAMED[name]] = value
            notices.append(f"RLlib's {name} = {value} is {RENAMED[name]} = {value}")
    if "l2_coeff" in values:
        scale = float(result.get("sigma", sigma or RLLIB_SIGMA))
        result["weight_decay"] = float(values["l2_coeff"]) / scale
        notices.append(
            f"RLlib's l2_coeff = {values['l2_coeff']} is weight_decay = {result['weight_decay']:g} (divided by sigma)"
        )
    if "observation_filter" in values:
        filters = {"MeanStdFilter": True, "NoFilter": False}
        if values["observation_filter"] not in filters:
            raise UsageError(f"observation_filter is {values['observation_filter']!r}; expected MeanStdFilter or NoFilter")
        result["normalize_observations"] = filters[values["observation_filter"]]
        chosen = str(result["normalize_observations"]).lower()
        notices.append(f"RLlib's observation_filter = {values['observation_filter']} is normalize_observations = {chosen}")
    if "eval_prob" in values:
        episodes = float(result.get("population", 1000))
        result["center_episodes"] = max(1, round(float(values["eval_prob"]) * episodes))
        notices.append(
            f"RLlib's eval_prob = {values['eval_prob']} is center_episodes = {result['center_episodes']} every generation"
        )
    if "report_length" in values:
        notices.append("RLlib's report_length is not needed: every centre evaluation is reported by itself")
    return result, notices
