"""The tables of speed: rollouts, learners, recovery, clusters."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from typing import Any

from evidence_text import load, stored, table


def rollout() -> str:
    """Whole generations against bare replays of the same episodes, on two machines."""
    parts = []
    for data in (load("rollout"), load("rollout-16")):
        rows = []
        for one in data["measurements"]:
            name, detail = one["name"].removeprefix("rollout/"), one["detail"]
            rows.append(
                [name, one["wanted"], f"**{one['value']:.2f}**", detail["by processor time"], detail["esker steps/s"]]
            )
        heads = ["environment", "wanted", "by the clock", "by processor time", "esker steps/s"]
        parts.append(f"{origin(data)}\n\n" + table(heads, rows))
    return "\n\n".join(parts)


def scaling() -> str:
    """Whole generations by n workers against as many bare processes, and how far the bare processes scale."""
    if not stored("scaling"):
        return "No result of `python benchmarks/rollout.py --only scaling` is stored yet."
    data, rows, alone = load("scaling"), [], {}
    for one in data["measurements"]:
        _, env, workers = one["name"].split("/")
        ours, raw = (float(one["detail"][f"{who} steps/s"].replace(",", "")) for who in ("esker", "raw"))
        if int(workers) == 1:
            alone[env] = raw
        share = f"{raw / int(workers) / alone[env]:.2f}" if env in alone else "–"
        rows.append([env, workers, f"{ours:,.0f}", f"{raw:,.0f}", f"**{one['value']:.2f}**", one["wanted"], share])
    heads = ["environment", "workers", "esker steps/s", "bare steps/s", "ratio", "wanted", "a bare process, of one alone"]
    return f"{origin(data)}\n\n" + table(heads, rows)


def tail() -> str:
    """Two seeds at once against one."""
    data = load("tail")
    names = {"one": "one", "shared": "two, half of the cores each"}
    rows = [
        [text, ", ".join(f"{rate:,.0f}" for rate in data["steps_per_second"][name]), f"**{data['gain'][name]:.2f}**"]
        for name, text in names.items()
    ]
    return f"{origin(data)}\n\n" + table(["seeds", "steps/s of all", "to one seed"], rows)


def startup() -> str:
    """Processor time from a command to its end."""
    data = load("startup")
    rows = [[name, f"{seconds:.2f} s"] for name, seconds in data["seconds"].items()]
    return f"{origin(data)}\n\n" + table(["command", "processor time of all its processes"], rows)


def origin(data: dict[str, Any]) -> str:
    """When, where and how a result was measured, in one line."""
    machine = data["machine"]
    versions = ", ".join(f"{name} {machine['packages'][name]}" for name in ("gymnasium", "mujoco"))
    note = f"; {data['note']}" if data["note"] else ""
    where = f"{machine['cores']} cores, {machine['cpu']}, {versions}"
    return f"{data['date']}, commit {data['commit']}, {where}{note}: `{data['command']}`"


def recovery() -> str:
    """How long a run stands still after a fault."""
    by_fault: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for session in load("cluster")["recovery"]:
        for reading in session["readings"]:
            if "usual_s" in reading and reading.get("longest_s") is not None:
                by_fault[reading["fault"]].append((reading["longest_s"], reading["usual_s"]))
    rows = []
    for fault, readings in by_fault.items():
        usual = statistics.median(value for _, value in readings)
        rows.append([fault, ", ".join(f"{longest:.1f} s" for longest, _ in readings), f"{usual:.1f} s"])
    return table(["fault", "longest wait for a generation after it", "usual generation"], rows)


def coordinator() -> str:
    """What the coordinator needs for a generation of 10,000 members that do nothing."""
    data = load("cluster")
    rows = []
    for part in ("coordinator", "nodes"):
        for session in data[part]:
            for reading in session["readings"]:
                times = [f"{reading[key]:.0f}" for key in ("wall_ms", "worst_ms", "cpu_ms")]
                rows.append([f"{reading['workers']:,}", reading["nodes"], *times, session["date"], session["load"]])
    return table(["workers", "nodes", "ms per generation", "worst", "CPU ms", "date", "machine"], rows)


def ray_ratio() -> str:
    """Ray against the local engine on one machine."""
    rows = []
    for session in load("cluster")["ratio"]:
        for reading in session["readings"]:
            rows.append([session["date"], reading["env"], f"{reading['ratio_of_medians']:.2f}", session["load"]])
    return table(["date", "environment", "generation on Ray / local", "machine"], rows)


def learners() -> str:
    """Updates and rollouts of the algorithms with gradients against bare loops."""
    data = load("hybrids-speed")
    training, rolled = data["hybrids"]["training"], data["hybrids"]["rollouts"]["the command above"]
    rows = [
        ["TD3 updates/s, one core", *pair(data["learner"]["updates_per_second"].values(), data["learner"]["ratio"])],
        ["critic updates/s beside an actor", *pair(list(training["critic"].values())[:2], training["critic"]["ratio"])],
        ["actor updates/s at the same time", *pair(list(training["actor"].values())[:2], training["actor"]["ratio"])],
    ]
    for name, cells in rolled.items():
        rows.append([f"rollouts, steps/s: {name}", *pair(list(cells.values())[:2], cells["ratio"])])
    batched = data["batched_rl"]
    rows.append(
        ["`--batched-rl`, five actors at once / one by one", *pair(batched["updates_per_second"].values(), batched["ratio"])]
    )
    return table(["what", "esker", "bare loop or replay", "ratio"], rows)


def pair(values: Any, ratio: float) -> list[str]:
    """Two rates and their ratio."""
    return [f"{value:,.0f}" for value in values] + [f"{ratio:.2f}"]


def asynchronous() -> str:
    """Asynchronous against synchronous with one slow actor."""
    data = load("hybrids-speed")["asynchronous"]["cases"]
    rows = [[f"`{name}`", *(cell for cell in case.values())] for name, case in data.items()]
    return table(["algorithm", *next(iter(data.values()))], rows)


def cluster_constants() -> tuple[float, float, float]:
    """Seconds of the coordinator, for each node, and of the shared sum, from the stored readings of one small machine."""
    data = load("cluster")
    quiet = next(session for session in data["nodes"] if session["load"] == "alone on the machine")["readings"]
    fit = statistics.linear_regression([one["nodes"] for one in quiet], [one["wall_ms"] for one in quiet])
    whole = statistics.median(data["update"][0]["readings"][0]["threads_1_ms"])
    asking = statistics.fmean(load("readings")["model"]["asking_ms"])
    shared = 2 * math.sqrt(whole * asking)  # the least of whole / k + asking * k over the number k of nodes that are asked
    return fit.intercept / 1000, fit.slope / 1000, shared / 1000


def cluster_model() -> str:
    """What the constants of one small machine predict for clusters."""
    coordinator, per_node, shared = cluster_constants()
    model, rows = load("readings")["model"], []
    for cores in model["cores"]:
        nodes = math.ceil(cores / model["cores_of_a_node"])
        simulation = math.ceil(model["members"] / cores) * model["core_seconds"]
        rest = coordinator + per_node * nodes + shared
        whole = simulation + rest
        rows.append(
            [f"{cores:,}", nodes, f"{simulation:.1f} s", f"{rest:.2f} s", f"{whole:.2f} s", f"{simulation / whole:.0%}"]
        )
    constants = (
        f"N = {model['members']:,}, ℓ = {model['core_seconds']:g} s (assumed); the coordinator's {coordinator * 1000:.0f} "
        f"ms and {per_node * 1000:.2f} ms per node are a line through the quiet readings for 1 to 100 nodes above; the "
        f"shared sum's {shared * 1000:.0f} ms is the sum on one core shared out over as many nodes as make it fastest."
    )
    heads = [
        "cores",
        f"nodes of {model['cores_of_a_node']}",
        "⌈N/c⌉ · ℓ",
        "coordinator and update",
        "T",
        "share of simulation",
    ]
    return f"{constants}\n\n" + table(heads, rows)
