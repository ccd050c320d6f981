"""The tables that are generated from benchmarks/results, one function each."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import evidence_choices
import evidence_device
import evidence_faults
import evidence_functions
import evidence_language
import evidence_notes
import evidence_peers
import evidence_readings
import evidence_speed
import evidence_sweep
import page_options
from evidence_text import RESULTS, ROOT, load, million, number, table

README = (  # what the README shows, in this order, with what the numbers alone do not tell
    ("cartpole-es", "MLP"),
    ("lunarlander-es", "MLP"),
    ("lunarlandercontinuous-pgpe", "linear, PGPE with ClipUp"),
    ("bipedalwalker-es", "MLP, growing episodes"),
    ("swimmer-pgpe", "linear, PGPE with ClipUp"),
    ("swimmer-ars", "linear, ARS"),
    ("hopper-ars", "linear, ARS"),
    ("walker2d-pgpe", "linear, PGPE with ClipUp"),
    ("walker2d-ars", "linear, ARS; stopped by hand"),
    ("pong-ars", "linear on pixels, ARS"),
    ("ant-ars", "linear, ARS, growing episodes"),
    ("halfcheetah-ars", "linear, ARS, the best of four starts"),
    ("halfcheetah-es", "MLP"),
    ("halfcheetah-aes-rl", "AES-RL, one H200"),
    ("humanoid-ars", "linear, ARS; two of three were stopped while rising"),
    ("humanoidstandup-ars", "linear, ARS, growing episodes"),
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
    def algo(self) -> str:
        """The second part of the preset's name."""
        return str(self.data["preset"]).split("/")[1]

    @property
    def is_preset(self) -> bool:
        """Whether the preset of this result is shipped; one with fewer than three seeds is not."""
        return (ROOT / "esker" / "presets" / f"{self.data['preset']}.toml").exists()

    @property
    def episodes(self) -> str:
        """Evaluation episodes of a seed."""
        return ", ".join(sorted({str(seed["evaluation"]["episodes"]) for seed in self.data["seeds"]}))


def learning_results() -> list[Result]:
    """Every result that has seeds of a preset, by name."""
    files = [(path.stem, json.loads(path.read_text())) for path in sorted(RESULTS.glob("*.json"))]
    return [Result(name, data) for name, data in files if isinstance(data, dict) and "preset" in data and "seeds" in data]


def readme() -> str:
    """What was learnt, on one screen."""
    rows = []
    for name, how in README:
        result = Result(name, load(name))
        means = result.means
        preset = f"`{result.data['preset']}`" if result.is_preset else f"none: `--algo {result.algo}`"
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
        note = f"\n- {data['note'][0].upper()}{data['note'][1:].rstrip('.')}." if data.get("note") else ""
        parts.append(
            f"### {data['preset']}\n\n![{data['preset']}](curves/{result.file}.svg){video(result.file)}\n\n"
            f"```\n{data['command']}\n```\n\n" + "\n".join(facts) + note
        )
    return "\n\n".join(parts)


def video(name: str) -> str:
    """A picture of the policy that comes with the preset, where there is one."""
    if not (ROOT / "docs" / "pictures" / f"{name}.gif").exists():
        return ""
    return f" ![the policy that comes with esker](../pictures/{name}.gif)"


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
    for path in sorted((ROOT / "esker" / "presets").glob("*/*/results.json")):
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


def mean_episodes() -> str:
    """The centre of AES-RL after equal steps, with one and with five episodes of the mean for each individual."""
    data = load("halfcheetah-aes-rl")
    rows = []
    for counted, steps in (
        ("simulated", 600_000),
        ("simulated", 1_000_000),
        ("simulated", 2_000_000),
        ("training", 300_000),
        ("training", 970_000),
    ):
        key = "env_steps" if counted == "simulated" else "training_steps"
        cells = [
            " · ".join(number(evidence_notes.late(seed["curve"], key, steps)) for seed in runs["seeds"])
            for runs in (data, data["earlier"][0])
        ]
        rows.append([f"after {million(steps)} {counted} steps", *cells])
    return table(["", "1 episode", "5 episodes"], rows)


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
        "evolution-lunar_lander-module": "LunarLander with EvolutionModule's settings",
    }
    rows = []
    for name, what in names.items():
        data = load(name)
        iterations = f"{data['iterations']['median']} and {data['iterations']['worst']}"
        best = f"{number(data['best']['median'])} and {number(data['best']['worst'])}"
        rows.append([what, data["solved"], iterations, best, f"`{data['command']}`"])
    return table(["what", "solved", "iterations, median and worst", "best centre, median and worst", "command"], rows)


TABLES: dict[str, Callable[[], str]] = {
    "readme": readme,
    "learning": learning,
    "shipped": shipped,
    "hybrids-halfcheetah": lambda: hybrids("HalfCheetah-v5"),
    "hybrids-swimmer": lambda: hybrids("Swimmer-v5"),
    "best": evidence_choices.best,
    "faults": evidence_faults.campaigns,
    "defaults": evidence_choices.defaults,
    "aes-rules": aes_rules,
    "early-halfcheetah": evidence_notes.early,
    "slow-gaits": evidence_notes.slow_gaits,
    "one-plus-one": evidence_notes.one_plus_one,
    "swimmer-early": evidence_notes.swimmer_early,
    "swimmer-cem": evidence_notes.swimmer_cem,
    "mean-episodes": mean_episodes,
    "cluster-model": evidence_speed.cluster_model,
    "reference-frames": reference_frames,
    "evolution": evolution,
    "sweep": evidence_sweep.trials,
    "options": page_options.options,
    **{f"readings-{topic}": partial(evidence_readings.readings, topic) for topic in evidence_readings.topics()},
    "recovery": evidence_speed.recovery,
    "coordinator": evidence_speed.coordinator,
    "ray-ratio": evidence_speed.ray_ratio,
    "learners": evidence_speed.learners,
    "asynchronous": evidence_speed.asynchronous,
    "rollout": evidence_speed.rollout,
    "scaling": evidence_speed.scaling,
    "startup": evidence_speed.startup,
    "tail": evidence_speed.tail,
    "peers": evidence_peers.peers,
    "peers-readme": evidence_peers.readme,
    "device-origin": evidence_device.origin,
    "device-determinism": evidence_device.determinism,
    "device-exact": evidence_device.exact,
    "device-worlds": evidence_device.worlds,
    "device-generations": evidence_device.generations,
    "device-policies": evidence_device.policies,
    "device-served": evidence_device.served,
    "device-batches": evidence_device.batches,
    "simulators": evidence_device.simulators,
    "language-learning": evidence_language.learning,
    "language-others": evidence_language.others,
    "language-sweep": evidence_language.sweep,
    "language-speed": evidence_language.speed,
    "language-cpu": evidence_language.cpu,
    "function-origin": evidence_functions.origin,
    "function-budgets": evidence_functions.budgets,
    "function-times": evidence_functions.times,
    "function-evaluations": evidence_functions.evaluations,
}
