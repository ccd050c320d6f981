"""pytorch-es's flags, translated into esker's options with a notice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.config.foreign import Translation, same_meaning
from esker.errors import UsageError

SAME = {
    "n": "population",
    "num_processes": "workers",
    "max_episode_length": "max_episode_steps",
    "max_gradient_updates": "generations",
    "silent": "quiet",
}
SMALL_NET = {"network": "mlp", "hidden": (64, 64), "activation": "selu"}
ELSEWHERE = {"test": "esker render RUN --watch", "restore": "esker render RUN --watch, esker eval RUN or esker resume RUN"}
SWITCHES = ("small-net", "variable-ep-len", "silent", "test")
OWN = frozenset({*SAME, *ELSEWHERE, "small_net", "variable_ep_len"})
FLAGS = ("env-name", *sorted(name.replace("_", "-") for name in OWN))


def translate(values: Mapping[str, Any]) -> Translation:
    """esker's values for a mapping with pytorch-es's keys. What is no option of training raises UsageError."""
    for name, command in ELSEWHERE.items():
        if name in values:
            raise UsageError(f"pytorch-es's {name} is a command here: {command}")
    done = Translation({name: value for name, value in values.items() if name not in OWN})
    for name, target in SAME.items():
        if name in values:
            same_meaning(values, name, target)
            done.put("pytorch-es", name, values[name], target, values[name])
    if values.get("small_net"):
        done.values |= {name: value for name, value in SMALL_NET.items() if name not in values}
        done.notices.append("pytorch-es's small-net is network = mlp, hidden = 64,64, activation = selu")
    if values.get("variable_ep_len"):
        done.put("pytorch-es", "variable_ep_len", True, "adaptive_cap", "twice-mean")
    return done
