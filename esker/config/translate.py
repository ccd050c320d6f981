"""The one translation of every request: from a mapping that may hold other systems' keys to esker's values, with notices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from esker.config import aesrl, es_torch, pytorch_es, rllib
from esker.config.build import default_of
from esker.config.foreign import Translation
from esker.errors import UsageError

RUNS = {"ES": "es"}  # RLlib's names of algorithms
SWITCHES = ("visualize", "debug", "cemrl_no_antithetic", *pytorch_es.SWITCHES)  # flags without a value
# What may be given on the command line as in the other systems, besides esker's own flags.
FLAGS = ("env", "run", "redis-address", *sorted(aesrl.OWN), *pytorch_es.FLAGS)


@dataclass(frozen=True)
class Names:
    """Environment and algorithm of a mapping, and the rest of it."""

    env: str | None
    algo: str | None
    values: dict[str, Any]


def names_in(values: Mapping[str, Any]) -> Names:
    """Environment and algorithm of a mapping, under whichever names. What is unknown or contradictory raises UsageError."""
    rest = {name: value for name, value in values.items() if name not in ("env", "env_name", "algo", "algorithm", "run")}
    run = _text("run", values)
    if run is not None and run not in RUNS:
        raise UsageError(f"run is {run!r}; of RLlib's algorithms esker knows {', '.join(RUNS)}")
    env = _agreed({"env": _text("env", values), "env_name": _text("env_name", values)})
    translated = {"algorithm": aesrl.algorithm_of(values), "run": RUNS[run] if run else None}
    return Names(env, _agreed({"algo": _text("algo", values), **translated}), rest)


def translate(
    values: Mapping[str, Any],
    algo: str,
    kind: type[Any],
    preset: Mapping[str, Any],
    options: Mapping[str, Any],
    whole: bool = False,
) -> Translation:
    """esker's values for a mapping that may hold other systems' keys, once all layers are known. Raises UsageError.

    `options` are the flags, which count more than the mapping; `preset` and the defaults of `kind` count less. `whole`: it
    is a file of the AES-RL repository, and not a few of its flags.
    """
    known = {f.name: default_of(f) for f in fields(kind)}
    below = known | dict(preset)

    def resolved(name: str, own: Mapping[str, Any], otherwise: Any = None) -> Any:
        return options.get(name, own.get(name, below.get(name, otherwise)))

    done = Translation(dict(values))
    if pytorch_es.OWN & set(values):
        done = pytorch_es.translate(values)
    if es_torch.is_es_torchs(values):
        done = es_torch.translate(done.values, resolved)
    if aesrl.is_aesrls(values) or whole:
        done = _after(done, aesrl.translate(done.values, algo, set(known), below, whole))
    if rllib.is_rllibs(values):
        done = _after(done, rllib.translate(done.values, resolved))
    if "redis_address" in done.values:
        address = done.values.pop("redis_address")
        done.values |= {"engine": "ray", "address": address}
        done.notices.append(f"RLlib's redis-address = {address} is engine = ray, address = {address}")
    return done


def _after(first: Translation, second: Translation) -> Translation:
    return Translation(second.values, first.notices + second.notices, first.derived | second.derived)


def _text(name: str, values: Mapping[str, Any]) -> str | None:
    value = values.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{name} is {value!r}; expected text")
    return value


def _agreed(found: Mapping[str, str | None]) -> str | None:
    """The one value that several keys give."""
    given = {name: value for name, value in found.items() if value is not None}
    if len(set(given.values())) > 1:
        raise UsageError(f"{' and '.join(f'{name} is {value!r}' for name, value in given.items())}; give one of them")
    return next(iter(given.values()), None)
