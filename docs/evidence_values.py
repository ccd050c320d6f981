"""Values inside sentences: a page has `<!-- value: NAME -->text<!-- end -->`, and this file a function for each NAME."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import Any

from evidence_language import LEARNT
from evidence_text import ROOT, load


def setting(file: str, name: str) -> Any:
    """A constant of a script in benchmarks/, without importing it."""
    for node in ast.parse((ROOT / "benchmarks" / file).read_text()).body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) else [node.value]
            for one, value in zip(names, values, strict=True):
                if isinstance(one, ast.Name) and one.id == name:
                    return ast.literal_eval(value)
    raise KeyError(f"benchmarks/{file} has no constant {name}")


def flag(result: str, name: str) -> str:
    """The value of a flag in a stored command."""
    found = re.search(rf"{name} (\S+)", load(result)["command"])
    assert found, f"{result}: its command has no {name}"
    return found[1]


def most_cores() -> str:
    """The largest machine on which anything was measured."""
    return str(max(load(name)["machine"]["cores"] for name in ("rollout", "rollout-16", "scaling", "defaults")))


def best_by_evolution() -> str:
    """The highest share of right answers of a run by evolution."""
    names = [name for name in LEARNT if name != "language-grpo"]
    return f"{max(one['accuracy'] for name in names for one in load(name)['results']):.0%}"


def anchored_loss() -> str:
    """The mean loss on plain text at the end, without and with anchored decay, of the seed that has both."""
    anchored = load("language-addition-anchor")["results"][0]
    plain = next(one for one in load("language-addition-focus")["results"] if one["seed"] == anchored["seed"])
    return f"{plain['text_loss'][1]:.2f} to {anchored['text_loss'][1]:.2f}"


def generations(result: str) -> str:
    """The fewest and the most generations of a language result."""
    counts = [one["generations"] for one in load(result)["results"]]
    return f"{min(counts)} to {max(counts)}"


VALUES: dict[str, Callable[[], str]] = {
    "most-cores": most_cores,
    "solved-at": lambda: f"{setting('peers/solve.py', 'SOLVED'):g}",
    "solve-seconds": lambda: f"{setting('peers/solve.py', 'CAP'):g}",
    "held-out": lambda: str(setting("language_tasks.py", "HELD_OUT")),
    "language-sweep-seconds": lambda: flag("language-sweep", "--seconds"),
    "language-1024-generations": lambda: generations("language-addition-1024"),
    "language-1024-seeds": lambda: ", ".join(str(one["seed"]) for one in load("language-addition-1024")["results"]),
    "language-partial-best": lambda: f"{max(one['accuracy'] for one in load('language-addition-partial')['results']):.0%}",
    "language-best-evolution": best_by_evolution,
    "language-anchor-loss": anchored_loss,
    "cpu-members": lambda: str(setting("language_cpu.py", "MEMBERS")),
    "cpu-network": lambda: "-".join(map(str, setting("language_cpu.py", "SIZES"))),
    "best-episodes": lambda: ", ".join(sorted({str(run["episodes"]) for run in load("best")["runs"]})),
    "asynchronous-steps": lambda: f"{load('hybrids-speed')['asynchronous']['training_steps']:,}",
    "cluster-members": lambda: f"{setting('cluster.py', 'MEMBERS'):,}",
    "cluster-parameters": lambda: f"{load('cluster')['coordinator'][0]['readings'][0]['dimension']:,}",
    "ray-members": lambda: str(load("cluster")["ratio"][0]["readings"][0]["members"]),
}
