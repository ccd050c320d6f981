"""es-torch's configuration keys, translated into esker's with a notice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.config.foreign import Resolved, Translation, number, same_meaning
from esker.strategies.conventions import es_torch

MARKS = frozenset({"npop", "std"})  # keys that only es-torch has
STD, LR = 0.025, 0.04  # its HalfCheetah's


def is_es_torchs(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds a key that only es-torch has."""
    return bool(MARKS & set(values))


def translate(values: Mapping[str, Any], resolved: Resolved) -> Translation:
    """esker's values for a mapping with es-torch's keys: plain ascent, whose step has no 1/σ. Raises UsageError."""
    done = Translation({name: value for name, value in values.items() if name not in ("npop", "std", "bs", "lr")})
    if "npop" in values:
        same_meaning(values, "npop", "population")
    own = {"sigma": values.get("std", STD)}
    std = number("std", resolved("sigma", own), above=0)  # a flag's sigma counts for all three
    lr, decay = number("lr", values.get("lr", LR), above=0), number("weight_decay", values.get("weight_decay", 0.0), low=0)
    npop = number("npop", values.get("npop", 2), low=2)
    done.values |= es_torch(int(npop), lr, std, decay) | {"sigma": own["sigma"]}
    if "npop" not in values:
        del done.values["population"]
    done.derived |= {"lr": "sigma", "weight_decay": "sigma"}
    done.notices.append(
        f"es-torch's std, lr and weight_decay are sigma = {std:g}, lr = {lr * std:g} (lr·std) and weight_decay = "
        f"{decay / std:g} (divided by std), by plain ascent (sgd) on centred ranks of mirrored pairs"
    )
    if "bs" in values:
        done.put("es-torch", "bs", values["bs"], "slots", values["bs"])
    return done
