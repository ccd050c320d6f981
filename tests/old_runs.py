"""Small configurations whose run folders and results are kept as test data, and what is compared of them.

`tests/data` was written by running this file with the code of the commit that `golden.json` names. It is made again only
for a deliberate change of results, or for a new configuration: `python tests/old_runs.py`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import esker

HERE = Path(__file__).parent
DATA = HERE / "data"
STOP, END = 3, 5  # a kept folder was stopped after STOP generations; its configuration asks for END
COLUMNS = ["generation", "env_steps", "episodes", "return_mean", "return_max", "return_min", "return_std"]
COLUMNS += ["center_return", "center_rank", "best_return"]

BASE: dict[str, Any] = {"preset": None, "quiet": True, "workers": 0, "center_episodes": 2, "generations": END, "keep": 1}
ES = BASE | {"env": "Pendulum-v1", "max_episode_steps": 20, "population": 8, "sigma": 0.1, "lr": 0.05, "hidden": (6,)}
COUNTER = ES | {"noise": "counter"}
SCREEN = {k: v for k, v in COUNTER.items() if k not in ("hidden", "max_episode_steps")} | {"env": "worlds:Screen"}
HYBRID = BASE | {
    "env": "Pendulum-v1",
    "max_episode_steps": 15,
    "hidden": (6, 5),
    "batch_size": 8,
    "initial_steps": 30,
    "replay_size": 100,
}
# The damping that these runs had: 0.95, and its first addition still undecayed, which is what this first value decays to.
DAMPING = {"damp_tau": 0.95, "damp_init": 0.0010521052631578948}
CEM = HYBRID | DAMPING | {"population": 4, "rl_population": 2}
ASYNC = HYBRID | {"results_per_generation": 3, "critic_chunk": 20, "deterministic": True}
AES = ASYNC | {"algo": "aes-rl", "mean_episodes": 2, "mean_update_param": 50.0}

# Their run folders are in tests/data/runs; each is stopped, and goes on from there.
KEPT: dict[str, dict[str, Any]] = {
    "es-table": ES | {"table_size": 5000, "weight_decay": 0.01, "workers": 2},
    "es-counter": COUNTER
    | {"env": "CartPole-v1", "max_episode_steps": 50, "sigma": 0.5, "lr_decay": 0.9, "sigma_decay": 0.9},
    "es-low-rank": ES | {"noise": "low-rank", "rank": 2, "hidden": (6, 5), "table_size": 5000},
    "ars": {k: v for k, v in COUNTER.items() if k != "hidden"}
    | {"network": "linear", "initializer": "zero", "top_directions": 2, "shaping": "normalized", "optimizer": "sgd"},
    "gru": COUNTER | {"network": "gru", "hidden": (5, 4)},
    "conv-lstm": SCREEN | {"network": "conv-lstm", "channels": 2, "lstm_size": 3, "reference_frames": 4},
    "td3": HYBRID | {"algo": "td3", "generation_steps": 30},
    "cem-rl": CEM | {"algo": "cem-rl"},
    "p-cem-rl": CEM | {"algo": "p-cem-rl"},
    "acem-rl": ASYNC | {"algo": "acem-rl", "population": 4, "damp_tau": 0.95, "damp_init": 0.0010127768360301604},
    "one-plus-one": ASYNC | {"algo": "one-plus-one", "mean_episodes": 2},
    "aes-rl": AES,
    "evolution": {
        "algo": "function",
        "workers": 0,
        "sigma": 0.1,
        "population": 8,
        "lr": 0.05,
        "table_size": 5000,
        "weight_decay": 0.01,
    },
}
# Of these only the results are kept.
FRESH: dict[str, dict[str, Any]] = {
    "lstm": COUNTER | {"network": "lstm", "hidden": (5, 4), "shaping": "log_utility", "optimizer": "adamw"},
    "nature-cnn": SCREEN | {"network": "nature-cnn", "env_kwargs": {"size": 36}, "reference_frames": 4, "generations": 2},
    "torch-module": {k: v for k, v in COUNTER.items() if k != "hidden"} | {"network": "torch_modules:Plain"},
    "es-steps": COUNTER | {"min_steps": 250, "antithetic": False, "common_seeds": False, "shaping": "raw", "lr": 0.001},
    "es-episodes": COUNTER | {"episodes_per_member": 2, "action_noise": 0.1, "optimizer": "rmsprop", "survival_bonus": 1.0},
    "es-binned": COUNTER | {"action_mode": "binned", "bins": 3, "adaptive_cap": "twice-mean", "time_aware": True},
    "es-low-rank-relu": ES
    | {"noise": "low-rank", "table_size": 5000, "activation": "relu", "initializer": "normalized-columns"},
    "td3-bursts": HYBRID | {"algo": "td3", "generation_steps": 30, "update_every": 5, "policy_delay": 3},
    "cem-rl-late": CEM | {"algo": "cem-rl", "rl_start": 100, "antithetic": False, "divide_variance": False},
    "aes-rl-fixed": AES | {"mean_update": "fixed-linear", "negative_ratio": 0.2, "var_update": "fixed", "fixed_var_n": 10},
    "evolution-batch": {
        "algo": "function",
        "sigma": 0.1,
        "population": 8,
        "lr": 0.05,
        "noise": "counter",
        "evaluations_per_member": 2,
    },
}
CASES = KEPT | FRESH


@cache
def machine() -> dict[str, str]:
    """What this machine computes; the same bits can be expected where it is equal."""
    import gymnasium
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((8, 33, 33), dtype=np.float32) for _ in range(2))
    wide = rng.standard_normal((70, 600), dtype=np.float32)
    parts = [
        np.matmul(a, b),
        wide @ wide.T,
        np.matmul(a, b[:, :, :1]),
        np.tanh(a),
        np.exp(a),
        np.sqrt(np.abs(a)),
        a.mean(axis=0),
        a.std(),
    ]
    x = torch.from_numpy(a[0]).clone().requires_grad_()
    net = torch.tanh(torch.nn.functional.leaky_relu(x @ torch.from_numpy(b[0])) @ torch.from_numpy(b[1])).pow(2).mean()
    net.backward()
    adam = torch.optim.Adam([x], lr=0.01)
    adam.step()
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0))
    parts += [
        value.detach().numpy() for value in (net, x, noise, torch.from_numpy(a).sum(), torch.from_numpy(a[0]).softmax(1))
    ]
    torch.set_num_threads(threads)
    env = gymnasium.make("Pendulum-v1")
    parts += [env.reset(seed=0)[0], *(env.step(np.array([1.5], dtype=np.float32))[0] for _ in range(30))]
    return {
        "numbers": digest(*map(np.asarray, parts)),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "numpy": np.__version__,
        "torch": torch.__version__,
    }


def digest(*arrays: np.ndarray) -> str:
    """A hash of arrays' bytes."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def tensors(run: Path, generation: str | None = None) -> dict[str, np.ndarray]:
    """Every array of a run's checkpoint; of the latest unless one is named."""
    from safetensors.numpy import load_file

    name = generation or (run / "latest").read_text().strip()
    return load_file(run / "checkpoints" / name / "state.safetensors")


def rows(run: Path) -> list[dict[str, Any]]:
    """The journal."""
    return [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]


def result(run: Path) -> dict[str, Any]:
    """What is compared of a run: the centre's bits, and the columns of its journal that do not tell the time."""
    centre = tensors(run)["center"]
    assert centre.dtype == np.float32
    journal = rows(run)
    # The recorded code chose the best by the highest reading; the rule is another one now, what it reads is not.
    highest = itertools.accumulate((row["center_return"] for row in journal), max)
    columns = [{**row, "best_return": best} for row, best in zip(journal, highest, strict=True)]
    table = json.dumps([[row[name] for name in COLUMNS] for row in columns])
    return {
        "generations": len(journal),
        "center": digest(centre),
        "journal": hashlib.sha256(table.encode()).hexdigest(),
        "center_return": journal[-1]["center_return"],  # read by people, when the others differ
    }


def start(name: str, path: Path, stop: int | None = None) -> Path:
    """Train a configuration from nothing, to its end or until it is stopped after some generations."""
    options = dict(CASES[name])
    if options.get("algo") == "function":
        del options["algo"]
        evolution = esker.Evolution(_model(), quiet=True, keep=1, run_dir=str(path), **options, **_rewards(name))
        evolution.run(END if stop is None else stop, report_every=None)
        return path
    esker.train(options.pop("env"), run_dir=str(path), on_generation=_stopper(stop), **options)
    return path


def resume(name: str, path: Path, inexact: bool = False) -> Path:
    """Go on with a run to the end that its configuration names."""
    if CASES[name].get("algo") == "function":
        evolution = esker.Evolution.resume(path, _model(), inexact=inexact, **_rewards(name))
        evolution.run(END - evolution.iteration, report_every=None)
    else:
        esker.resume(path, trust=["worlds"], **({"inexact": True} if inexact else {}))
    return path


def _stopper(stop: int | None) -> Any:
    return None if stop is None else lambda row: row["generation"] + 1 >= stop


def _rewards(name: str) -> dict[str, Any]:
    return {"reward_batch": _reward_batch} if "batch" in name else {"reward": _reward}


def _model() -> Any:
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    for number, parameter in enumerate(model.parameters()):
        values = np.random.default_rng(number).standard_normal(tuple(parameter.shape), dtype=np.float32)
        parameter.data = torch.from_numpy(values)
    return model


def _reward(model: Any) -> float:
    import torch

    inputs = torch.linspace(-1, 1, 12).reshape(4, 3)
    with torch.no_grad():
        return -float(((model(inputs)[:, 0] - inputs.sum(1)) ** 2).mean())


def _reward_batch(members: Any) -> Any:
    return -sum((values - 0.3).pow(2).flatten(1).mean(1) for values in members.values())


def _make() -> None:
    """Write tests/data with the code that is imported."""
    folder = DATA / "runs"
    shutil.rmtree(folder, ignore_errors=True)
    golden: dict[str, Any] = {"commit": _commit(), "machine": machine(), "runs": {}}
    for name in CASES:
        whole = start(name, folder / f"{name}.whole")
        golden["runs"][name] = {"end": result(whole)}
        shutil.rmtree(whole)
        if name in KEPT:
            golden["runs"][name] |= _keep(name, start(name, folder / name, STOP))
    (DATA / "golden.json").write_text(json.dumps(golden, indent=1) + "\n")


def _keep(name: str, run: Path) -> dict[str, Any]:
    """Leave of a stopped run what is worth storing, and say what it returns."""
    (run / "lock").unlink()
    if (replay := run / "replay").exists():  # the file is mostly a hole
        width = 2 * 3 + 1 + 2  # Pendulum: observation, next observation, action, reward, end
        os.truncate(replay, rows(run)[-1]["training_steps"] * width * 4)
    kept: dict[str, Any] = {"stopped": result(run)}
    if CASES[name].get("algo") != "function":
        kept["returns"] = esker.evaluate(run, episodes=2, checkpoint="latest", workers=0)[0].returns
        kept["best"] = digest(esker.load(run, "best").parameters)
    return kept


def _commit() -> str:
    where = Path(esker.__file__).parent
    return subprocess.run(["git", "rev-parse", "HEAD"], cwd=where, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    _make()
