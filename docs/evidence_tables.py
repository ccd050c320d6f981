"""The tables that are generated from benchmarks/results, one function each."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import evidence_functions

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"
README = (  # what the README shows, in this order, with what the numbers alone do not tell
    ("cartpole-es", "MLP"),
    ("lunarlander-es", "MLP"),
    ("swimmer-ars", "linear, ARS; cut at 2M steps"),
    ("hopper-ars", "linear, ARS; stopped by hand"),
    ("walker2d-ars", "linear, ARS; stopped by hand"),
    ("halfcheetah-ars", "linear, ARS; stopped by hand"),
    ("halfcheetah-es", "MLP"),
    ("halfcheetah-aes-rl", "AES-RL, one H200"),
    ("humanoid-aes-rl", "AES-RL, one H200"),
)


@dataclass(frozen=True)
class Result:
    """A stored result."""

    file: str
    data: dict[str, Any]

    @property
    def means(self) -> list[float]:
        """The mean evaluation return of each seed, best first."""
        return sorted((seed["evaluation"]["mean"] for seed in self.data["seeds"]), reverse=True)

    @property
    def steps(self) -> int:
        """The most simulated steps of a seed."""
        return max(seed["env_steps"] for seed in self.data["seeds"])

    @property
    def training_steps(self) -> int | None:
        """The most training steps of a seed, where the algorithm counts them."""
        return max(seed.get("training_steps") or 0 for seed in self.data["seeds"]) or None

    @property
    def episodes(self) -> str:
        """Evaluation episodes of a seed."""
        return ", ".join(sorted({str(seed["evaluation"]["episodes"]) for seed in self.data["seeds"]}))


def load(name: str) -> Any:
    """A results file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def learning_results() -> list[Result]:
    """Every result that has seeds of a preset, by name."""
    files = [(path.stem, json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]
    return [Result(name, data) for name, data in files if isinstance(data, dict) and "preset" in data and "seeds" in data]


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


def number(value: float) -> str:
    """A return: whole above ten, one decimal below."""
    return f"{value:,.0f}" if abs(value) >= 25 else f"{value:.1f}"


def million(steps: int | None) -> str:
    """Steps in millions."""
    return "–" if steps is None else f"{steps / 1e6:.2f}M" if steps < 1e6 else f"{steps / 1e6:.1f}M"


def readme() -> str:
    """What was learnt, on one screen."""
    rows = []
    for name, how in README:
        result = Result(name, load(name))
        means = result.means
        preset = f"`{result.data['preset']}`"
        seeds = ", ".join(map(number, means))
        median = number(statistics.median(means))
        rows.append([result.data["env"], how, preset, median, number(means[-1]), seeds, million(result.steps)])
    return table(["environment", "how", "preset", "median", "worst", "every seed", "steps at most"], rows)


def learning() -> str:
    """The gallery: every preset with evidence, its curve, and the command under it."""
    parts = []
    for result in learning_results():
        data, means = result.data, result.means
        trained = f", {million(result.training_steps)} training steps" if result.training_steps else ""
        facts = [
            f"- median **{number(statistics.median(means))}**, worst **{number(means[-1])}**; "
            f"seeds {' · '.join(map(number, means))} ({result.episodes} evaluation episodes each)",
            f"- {million(result.steps)} simulated steps{trained} at most; "
            f"commit `{data['commit'][:7]}`, {data['machine']['cpu']}",
        ]
        note = f"\n- {data['note'][0].upper()}{data['note'][1:]}." if data.get("note") else ""
        parts.append(
            f"### {data['preset']}\n\n![{data['preset']}](curves/{result.file}.svg)\n\n```\n{data['command']}\n```\n\n"
            + "\n".join(facts)
            + note
        )
    return "\n\n".join(parts)


def hybrids(env: str) -> str:
    """The algorithms with gradients on one environment."""
    rows = []
    for result in learning_results():
        if result.data["env"] == env and result.training_steps:
            means = [seed["evaluation"]["mean"] for seed in result.data["seeds"]]
            steps = [million(result.training_steps), million(result.steps)]
            returns = [" · ".join(map(number, means)), number(statistics.median(means)), number(min(means))]
            rows.append([f"`{result.data['preset']}`", *steps, *returns])
    return table(["preset", "training steps", "simulated steps", "by seed", "median", "worst"], rows)


def shipped() -> str:
    """The policies that come with presets."""
    rows = []
    for path in sorted((RESULTS.parent.parent / "esker" / "presets").glob("*/*/results.json")):
        data = json.loads(path.read_text())
        spread = f"{number(data['mean_reward'])} ± {number(data['std_reward'])}"
        worst = number(data["min"])
        size = f"{data['parameters']:,}"
        rows.append([f"`{data['preset']}`", spread, worst, size, million(data["env_steps"]), f"`{data['command']}`"])
    return table(["policy", "return of 100 episodes", "worst episode", "parameters", "steps", "trained by"], rows)


def aes_rules() -> str:
    """AES-RL's update rules, the latest checkpoint of one seed each."""
    pairs = load("aes-rules")["pairs"]
    rows = []
    for mean in ("baseline-absolute", "baseline-relative", "fixed-linear", "fixed-sigmoid"):
        cells = [pairs.get(f"{mean}-{var}") for var in ("fixed", "adaptive")]
        shown = [number(cell["evaluation_of_latest"]["mean"]) if cell else "see the preset" for cell in cells]
        rows.append([f"`{mean}`", *shown])
    return table(["`--mean-update`", "`--var-update fixed --fixed-var-n 10`", "`--var-update adaptive`"], rows)


def reference_frames() -> str:
    """Virtual batch normalisation with fewer frames."""
    found = load("reference-frames")["reference_frames"]
    rows = []
    for frames in ("32", "128"):
        late = [seed["late"] for seed in found[frames]]
        shown = " · ".join(f"{value:.1f}" for value in late)
        rows.append([frames, shown, f"{statistics.median(late):.1f}", f"{min(late):.1f}"])
    return table(["reference frames", "by seed", "median", "worst"], rows)


def evolution() -> str:
    """What esker.Evolution learns."""
    names = {
        "evolution-cartpole": "CartPole, goal 475 five times in a row",
        "evolution-cartpole-module": "the same with EvolutionModule's settings",
        "evolution-lunar_lander": "LunarLander, goal 200 five times in a row",
    }
    rows = []
    for name, what in names.items():
        data = load(name)
        iterations = f"{data['iterations']['median']} and {data['iterations']['worst']}"
        best = f"{number(data['best']['median'])} and {number(data['best']['worst'])}"
        rows.append([what, data["solved"], iterations, best, f"`{data['command']}`"])
    return table(["what", "solved", "iterations, median and worst", "best centre, median and worst", "command"], rows)


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


TABLES: dict[str, Callable[[], str]] = {
    "readme": readme,
    "learning": learning,
    "shipped": shipped,
    "hybrids-halfcheetah": lambda: hybrids("HalfCheetah-v5"),
    "hybrids-swimmer": lambda: hybrids("Swimmer-v5"),
    "aes-rules": aes_rules,
    "reference-frames": reference_frames,
    "evolution": evolution,
    "recovery": recovery,
    "coordinator": coordinator,
    "ray-ratio": ray_ratio,
    "learners": learners,
    "asynchronous": asynchronous,
    "function-times": evidence_functions.times,
    "function-evaluations": evidence_functions.evaluations,
}
