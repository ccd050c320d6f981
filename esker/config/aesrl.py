"""The configuration keys of the AES-RL repository, translated into esker's with notices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from esker.errors import UsageError

ALGORITHM_NAMES = {
    "TD3": "td3",
    "CEM-RL": "cem-rl",
    "P-CEM-RL": "p-cem-rl",
    "AES-RL": "aes-rl",
    "(1+1)-ES": "one-plus-one",
    "ACEM-RL": "acem-rl",
}
RENAMED = {
    "num_actor_worker": "workers",
    "expl_noise": "exploration_noise",
    "update_freq": "policy_delay",
    "population_size": "population",
    "max_timestep": "training_steps",
    "sigma_init": "var_init",
    "logdir": "run_dir",
    "aesrl_mean_update": "mean_update",
    "aesrl_mean_update_param": "mean_update_param",
    "aesrl_var_update": "var_update",
    "aesrl_fixed_var_n": "fixed_var_n",
    "aesrl_rl_ratio": "rl_ratio",
    "aesrl_rl_k": "rl_k",
    "aesrl_negative_ratio": "negative_ratio",
    "aesrl_sigma_limit": "var_floor",
    "aesrl_critic_batch": "critic_chunk",
    "aesrl_one_plus_one_success_rate": "success_rate",
    "aesrl_one_plus_one_success_rate_tau": "success_tau",
    "cemrl_damp_init": "damp_init",
    "cemrl_damp_limit": "damp_limit",
    "cemrl_damp_tau": "damp_tau",
    "cemrl_tau": "damp_tau",  # what the repository's update reads; it never uses cemrl_damp_tau
    "cemrl_rl_population": "rl_population",
}
SAME = frozenset(
    [
        "hidden",
        "lr",
        "batch_size",
        "policy_noise",
        "noise_clip",
        "discount",
        "tau",
        "replay_size",
        "initial_steps",
        "actor_activation",
        "critic_activation",
        "seed",
        "parallel_critic",
    ]
)
OWN = frozenset({*RENAMED, "env_name", "algorithm", "cemrl_no_antithetic", "num_critic_worker"})


@dataclass(frozen=True)
class Translated:
    """esker's values, with what the file says of environment and algorithm, and notices."""

    values: dict[str, Any]
    env: str | None
    algo: str | None
    notices: list[str]


def translate(values: Mapping[str, Any], options_of: Callable[[str], set[str]], algo: str | None = None) -> Translated:
    """esker's values for a mapping that may hold the repository's keys; one that holds none stays as it is.

    `options_of` names an algorithm's options; `algo` is what the request names, before the file's `algorithm`. A name that
    neither knows raises UsageError.
    """
    if not OWN & set(values):
        return Translated(dict(values), None, None, [])
    named = algorithm_of(values)
    chosen = algo or named or "es"
    known = options_of(chosen)
    result = {name: value for name, value in values.items() if name not in OWN and name not in SAME}
    notices: list[str] = []
    for name, value in values.items():
        if name in ("env_name", "algorithm") or value is None:
            continue
        target, translated = _one(name, value)
        if name in result:
            continue
        if why := _needless(name, value, values, target, known, chosen):
            notices.append(f"AES-RL's {name} = {value} is not used: {why}")
            continue
        result[target] = translated
        if target != name:
            notices.append(f"AES-RL's {name} = {value} is {target} = {_text(translated)}")
    return Translated(result, values.get("env_name"), named, notices)


def algorithm_of(values: Mapping[str, Any]) -> str | None:
    """The algorithm that a configuration of the repository names. An unknown one raises UsageError."""
    name = values.get("algorithm")
    if name is None:
        return None
    if not isinstance(name, str) or name not in ALGORITHM_NAMES:
        raise UsageError(f"algorithm is {name!r}; AES-RL's configuration knows {', '.join(ALGORITHM_NAMES)}")
    return ALGORITHM_NAMES[name]


def _one(name: str, value: Any) -> tuple[str, Any]:
    if name == "cemrl_no_antithetic":
        return "antithetic", not value
    return RENAMED.get(name, name), value


def _needless(name: str, value: Any, values: Mapping[str, Any], target: str, known: set[str], algo: str) -> str | None:
    """Why a key has no effect here, if it has none."""
    if name == "num_critic_worker":
        return "one critic is what there is: a second one would train against the first's targets"
    if target not in known:
        return f"{algo} has no such option"
    if name == "cemrl_damp_tau" and "cemrl_tau" in values:
        return "the repository reads cemrl_tau instead"
    if name == "aesrl_fixed_var_n" and values.get("aesrl_var_update", "adaptive") == "adaptive":
        return "the adaptive rule finds n by itself"
    if name == "aesrl_negative_ratio" and values.get("aesrl_mean_update") != "fixed-linear":
        return "only fixed-linear has one"
    if name in ("num_actor_worker", "num_critic_worker", "cemrl_rl_population", "population_size") and not value:
        return "0 means the default"
    return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
