"""The configuration keys of the AES-RL repository, translated into esker's with notices."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from esker.config.foreign import Translation, same_meaning, text
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
    "cemrl_tau": "damp_tau",
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
OWN = frozenset({*RENAMED, "env_name", "algorithm", "cemrl_no_antithetic", "num_critic_worker", "actor_network_scheme"})
OWN |= {"ray_address", "ray_port", "redis_password", "visualize", "debug"}
SHARED = frozenset({"population_size", "sigma_init", "logdir"})  # names that other libraries have too
WITHOUT_EFFECT = {
    "visualize": "esker report --live shows a run",
    "debug": "every run reports errors",
    "ray_port": "it belongs to ray_address",
    "redis_password": "a token file takes its place; see esker cluster --help",
}
# The repository's defaults for keys that a file leaves out; esker's presets or defaults may differ.
DEFAULTS: dict[str, Any] = {
    "hidden": [400, 300],
    "lr": 1e-3,
    "batch_size": 100,
    "replay_size": 200_000,
    "initial_steps": 10_000,
    "sigma_init": 1e-3,
    "cemrl_tau": 0.90,
    "aesrl_rl_ratio": 0.0,
    "num_actor_worker": 1,
}
ENVIRONMENTS = (
    "HalfCheetah-v2",
    "Hopper-v2",
    "Walker2d-v2",
    "Ant-v2",
    "Humanoid-v2",
    "Swimmer-v2",
)  # the first: its default
MEAN_EPISODES = 5  # not a key: the repository always evaluates the mean on this many episodes


def is_aesrls(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds a key that only the AES-RL repository has."""
    return bool((OWN - SHARED) & set(values))


def translate(values: Mapping[str, Any], algo: str, known: set[str], below: Mapping[str, Any], whole: bool) -> Translation:
    """esker's values for a mapping with the repository's keys, for an algorithm whose options are `known`.

    `whole`: it is a file of the repository, whose defaults apply to what it leaves out; `below` is what would apply
    otherwise. A value that the repository would reject raises UsageError.
    """
    done = Translation({name: value for name, value in values.items() if name not in OWN and name not in SAME})
    for name, value in values.items():
        if value is None or name in done.values or name in ("env_name", "algorithm"):
            continue
        if name == "ray_address":
            _cluster(done, values)
            continue
        target, translated = _one(name, value)
        if why := WITHOUT_EFFECT.get(name) or _needless(name, value, values, target, known, algo):
            done.notices.append(f"AES-RL's {name} = {value} is not used: {why}")
        elif target != name:
            same_meaning(values, name, target)
            done.put("AES-RL", name, value, target, translated)
        else:
            done.values[target] = translated
    if str(done.values.get("seed")) == "-1":
        done.values["seed"] = 0
        done.notices.append("AES-RL's seed = -1 (none) is seed = 0: runs are repeatable here")
    if whole:
        _add_defaults(done, algo, known, below)
    return done


def _add_defaults(done: Translation, algo: str, known: set[str], below: Mapping[str, Any]) -> None:
    absent = {_one(name, value)[0]: value for name, value in DEFAULTS.items()} | {"mean_episodes": MEAN_EPISODES}
    if algo in ("td3", "cem-rl"):  # their one actor is the loop itself
        del absent["workers"]
    added = {name: value for name, value in absent.items() if name in known and name not in done.values}
    done.values |= added
    told = [f"{name} = {text(value)}" for name, value in added.items() if _plain(below.get(name)) != _plain(value)]
    if told:
        done.notices.append(f"not in the file, so taken from AES-RL's repository: {', '.join(told)}")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _cluster(done: Translation, values: Mapping[str, Any]) -> None:
    address = f"{values['ray_address']}:{values.get('ray_port') or 6379}"
    done.values |= {"engine": "ray", "address": address}
    done.notices.append(f"AES-RL's ray_address = {values['ray_address']} is engine = ray, address = {address}")


def environment_of(path: str | None) -> tuple[str, str]:
    """The environment of a file that names none, and why: after its folder, as the repository sorts them, or its default."""
    folder = Path(path).resolve().parent.name if path is not None else ""
    known = {name.lower(): name for name in ENVIRONMENTS}
    if folder in known:
        return known[folder], f"the file names no environment: {known[folder]}, after its folder"
    return ENVIRONMENTS[0], f"the file names no environment: {ENVIRONMENTS[0]}, AES-RL's default"


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
    if name == "actor_network_scheme":
        if value != "TD3":
            raise UsageError(f"actor_network_scheme is {value!r}; AES-RL has only TD3")
        return "it is the only one"
    if name == "num_critic_worker":
        return "there is one critic: a second one would train against the first's targets"
    if target not in known:
        return f"{algo} has no such option"
    if name == "cemrl_damp_tau":
        return "the repository reads cemrl_tau instead"
    if name == "aesrl_fixed_var_n" and values.get("aesrl_var_update", "adaptive") == "adaptive":
        return "the adaptive rule finds n by itself"
    if name == "aesrl_negative_ratio" and values.get("aesrl_mean_update") != "fixed-linear":
        return "only fixed-linear has one"
    if name in ("num_actor_worker", "num_critic_worker", "cemrl_rl_population", "population_size") and not value:
        return "0 means the default"
    return None
