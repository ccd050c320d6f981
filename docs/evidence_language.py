"""The tables of benchmarks/results/language-*.json: what was learnt, and how fast a generation is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evidence_text import load, table

LEARNT = (
    "language-addition",
    "language-addition-fast",
    "language-addition-1024",
    "language-addition-long",
    "language-addition-partial",
    "language-addition-focus",
    "language-addition-anchor",
    "language-grpo",
)
OTHER = {"language-addition3": "three-digit addition", "language-json": "a JSON object with the key `answer`"}


def learning() -> str:
    """Exact matches of held-out problems, by method and seed."""
    rows = []
    for name in LEARNT:
        data = load(name)
        results = data["results"]
        seeds = ", ".join(f"{one['accuracy']:.0%}{' (stopped)' * ('stopped' in one)}" for one in results)
        seconds = ", ".join(f"{one['seconds']:.0f}" for one in results)
        before = results[0]["text_loss"][0]
        after = sorted({f"{one['text_loss'][1]:.2f}" for one in results if "text_loss" in one})
        loss = f"{before:.2f}, then {' to '.join(dict.fromkeys((after[0], after[-1])))}"
        rows.append([settings(results[0], data["command"]), seconds, seeds, loss, f"`{name}.json`"])
    shown = table(["method", "seconds by seed", "right by seed", "loss on plain text", "stored in"], rows)
    return f"{shown}\n\n{origins(LEARNT)}"


def settings(result: dict[str, Any], command: str) -> str:
    """The method with its settings, as a person writes them."""
    chosen = result["settings"]
    if result["method"] == "grpo":
        return f"GRPO, lr {chosen['lr']:g}, groups of {chosen['group']}"
    compiled = ", compiled" if "--compile" in command else ""
    batch = f"{chosen['population']} members × {chosen['prompts_per_generation']} prompts"
    decay = f" × {chosen['lr_decay']:g} per generation" if "lr_decay" in chosen else ""
    balanced = ", balanced" if chosen.get("balance") else ""
    focused = f", focus {chosen['focus']:g}" if chosen.get("focus") else ""
    anchored = f", anchor decay {chosen['anchor_decay']:g}" if chosen.get("anchor_decay") else ""
    return f"evolution, {batch}, σ {chosen['sigma']:g}, lr {chosen['lr']:g}{decay}{balanced}{focused}{anchored}{compiled}"


def others() -> str:
    """The harder task, and the reward that is not arithmetic."""
    rows = []
    for name, task in OTHER.items():
        results = load(name)["results"]
        columns = [
            ", ".join(f"{one['generations']}" for one in results),
            ", ".join(f"{one['accuracy']:.0%}" for one in results),
            ", ".join(f"{one['curve'][0][3]:.2f} → {one['score']:.2f}" for one in results),
            f"`{' '.join(results[0]['after'][0][1].split())}`",
        ]
        rows.append([task, *columns, f"`{name}.json`"])
    heads = ["task", "generations by seed", "right by seed", "mean score", "a completion at the end", "stored in"]
    return f"{table(heads, rows)}\n\n{origins(OTHER)}"


def sweep() -> str:
    """The settings of evolution that were tried before."""
    rows = [
        [f"{one['settings']['sigma']:g}", f"{one['settings']['lr']:g}", f"{one['accuracy']:.1%}", f"{one['score']:.2f}"]
        for one in load("language-sweep")["results"]
    ]
    return f"{table(['σ', 'lr', 'right', 'mean score'], rows)}\n\n{origins(('language-sweep',))}"


def speed() -> str:
    """A generation of members against plain inference of the same batch."""
    rows, what = [], set()
    for one in load("language-speed-long")["results"] + load("language-speed")["results"]:
        batch = f"{one['members']} × {one['prompts']}"
        ratios = [f"{one['ratio']:.2f}", f"{one['ratio_without_update']:.2f}"]
        rows.append([one["mode"], batch, one["new_tokens"], *ratios])
        what.add(f"{one['dtype'].removeprefix('torch.')}, rank {one['rank']}, {one['prompt_tokens']} prompt tokens")
    shown = table(["mode", "members × prompts", "new tokens", "ratio to inference", "without the update"], rows)
    return f"{'; '.join(sorted(what))}\n\n{shown}\n\n{origins(('language-speed-long', 'language-speed'))}"


def cpu() -> str:
    """Torch layers against NumPy's."""
    data = load("language-cpu")
    rows = [
        [one["steps"], f"**{one['ratio']:.2f}**", ", ".join(f"{ratio:.2f}" for ratio in sorted(one["ratios"]))]
        for one in data["results"]
    ]
    shown = table(["steps", "torch's time / NumPy's, median", "every ratio"], rows)
    return f"{shown}\n\n{origins(('language-cpu',))}"


def origins(names: Iterable[str]) -> str:
    """When and where results were measured; those of one kind together."""
    found: dict[str, list[str]] = {}
    for name in names:
        data = load(name)
        found.setdefault(f"{data['date']}, {data['machine']}, torch {data['torch']}", []).append(f"`{name}.json`")
    return "\n".join(f"- {', '.join(files)}: {where}" for where, files in found.items())
