"""The tables of docs/evidence/gpu.md: worlds on a device beside Gymnasium's, rates, policies, many seeds in one batch."""

from __future__ import annotations

import statistics
from typing import Any

from evidence_text import load, million, number, stored, table

EXACT = {
    "served-lstm": "LSTMs on the GPU, worlds in 4, 2 and 3 worker processes",
    "served-cheetah": "MLPs, likewise",
    "served-pong": "`nature-cnn`, likewise",
    "killed": "MLPs, worlds in 3 worker processes, ended by SIGKILL",
    "warp-cheetah": "MuJoCo Warp with `--deterministic`, 256 members",
    "warp-humanoid": "the same, 128 members",
    "warp-walker": "the same, 256 members",
    "fleet": "a low-rank population on engines of a Ray cluster that share a GPU, beside one process",
}


def origin() -> str:
    """The machine and the versions."""
    data = load("device")
    versions = f"torch {data['torch']}, Warp {data['warp']}, MuJoCo Warp {data['mujoco_warp']}"
    return f"{data['date']}, {data['device']}, {versions}; {data['note']}."


def worlds() -> str:
    """How far MuJoCo Warp's worlds are from Gymnasium's, and the pace of all worlds."""
    rows = []
    data = load("device")
    for row in data["worlds"]:
        rate = f"{row['rows'] / row['step_ms'] * 1e3:,.0f}" if row["rows"] > 1000 else ""
        far = f"{row['observation_difference']:.0e}", f"{row['reward_difference']:.0e}"
        rows.append([row["env"], f"{row['rows']:,}", *far, rate])
    return table(["environment", "worlds", "observations", "rewards", "steps/s"], rows)


def generations() -> str:
    """Useful steps/s over whole generations."""
    rows = []
    for row in load("device")["generations"]:
        length = f"{row['episode_length_last']:,.0f}"
        rows.append([row["env"], f"{row['members']:,}", row["seeds"], length, f"{row['steps_per_second']:,.0f}"])
    return table(["environment", "members", "seeds", "episode length", "steps/s"], rows)


def policies() -> str:
    """One forward pass of 4,096 members."""
    rows = [[name, f"{row['forward_ms']:.2f} ms"] for name, row in load("device")["policies"].items()]
    return table(["noise and products", "4,096 × 376-1024-1024-17"], rows)


def served() -> str:
    """Policies on a GPU with worlds in worker processes, beside the same cores' bare stepping."""
    data, rows = load("served"), []
    for row in data["results"]:
        network = row["options"].get("network", "mlp")
        rates = f"{row['random_steps_per_second']:,.0f}", f"{row['steps_per_second']:,.0f}"
        rows.append([row["env"], f"`{network}`", f"{row['members']:,}", *rates, f"**{row['ratio']:.2f}**"])
    first = data["results"][0]
    shown = table(["environment", "network", "members", "random actions, steps/s", "generations, steps/s", "ratio"], rows)
    return f"{shown}\n\n{data['date']}, {first['device']}, {first['cores']} cores, torch {data['torch']}."


def batches() -> str:
    """Seeds that shared a device: the centre's last return on the device, as quantiles, and in Gymnasium."""
    rows = []
    for batch in load("device")["batches"].values():
        seeds = batch["seeds"]
        steps = max(seed["env_steps"] for seed in seeds)
        judged = [seed["gymnasium_mean"] for seed in seeds if "gymnasium_mean" in seed]
        quantiles = _quantiles([seed["center_return"] for seed in seeds])
        there = " · ".join(_quantiles(judged)) if judged else ""
        rows.append([batch["env"], len(seeds), million(steps), " · ".join(quantiles), there])
    heads = ["environment", "seeds", "steps of each", "last centre: worst · quartiles · best", "best centre in Gymnasium"]
    return table(heads, rows)


def simulators() -> str:
    """One policy in both simulators."""
    if not stored("simulators"):
        return ""
    data = load("simulators")
    rows = [
        [row["env"], f"`{row['policy']}`", *(_spread(row[name]) for name in ("gymnasium", "warp"))] for row in data["rows"]
    ]
    head = f"{data['episodes']} episodes from equal starts"
    return table(["environment", "policy", f"Gymnasium, {head}", f"MuJoCo Warp ({data['device']})"], rows)


def determinism() -> str:
    """The first difference between two computations of the same steps."""
    rows = []
    for found in load("device")["determinism"]:
        mode = "yes" if found["mode"] else "no"
        for how in (name for name in found if name not in ("env", "mode")):
            first = found[how]
            equal = f"{first['rows_equal']:.2%}"
            rows.append([found["env"], mode, how, first["step"] + 1, equal, f"{first['largest']:.0e}"])
    heads = ["environment", "`opt.deterministic`", "compared", "differs from step", "equal worlds", "largest difference"]
    return table(heads, rows)


def exact() -> str:
    """What was compared bit for bit on a GPU."""
    checks = load("device-exact")["checks"]
    rows = []
    for name, what in EXACT.items():
        found = checks[name]
        answers = [f"{key}: {'yes' if value else 'no'}" for key, value in found.items() if isinstance(value, bool)]
        rows.append([found.get("env", "–"), what, "; ".join(answers)])
    data = load("device-exact")
    where = f"{data['date']}, {data['device']}, torch {data['torch']}; {data['note']}."
    return f"{table(['environment', 'what', 'bits'], rows)}\n\n{where}"


def seeds_data() -> dict[str, Any]:
    """The 64 seeds of HalfCheetah, for a curve."""
    return load("device")["batches"]["halfcheetah-64"]


def _quantiles(values: list[float]) -> list[str]:
    middle = statistics.quantiles(values, n=4) if len(values) > 1 else values
    return [number(value) for value in (min(values), *middle, max(values))]


def _spread(row: dict[str, float]) -> str:
    return f"{number(row['mean'])} ± {number(row['std'])}"
