"""The results beside the peers as Markdown: printed by the benchmark, and shown in docs/performance.md."""

from __future__ import annotations

from typing import Any

import numpy as np

SOLVERS = ("esker", "evotorch", "minimal")
UPDATERS = ("esker", "esker-table", "evosax", "evox", "evotorch")


def as_markdown(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = [_heading(found), ""]
    if "steps" in found:
        lines += ["| environment | contender | steps/s | ÷ best peer | PSS, MB |", "|---|---|---|---|---|"]
        for env, results in found["steps"].items():
            best = max(r["steps_per_second"] for name, r in results.items() if name.split("-")[0] not in ("esker", "raw"))
            for name, r in results.items():
                rate = r["steps_per_second"]
                lines.append(f"| {env} | {name[:-6]} | {rate:,.0f} | {rate / best:.2f} | {r['pss_mb']:,.0f} |")
        lines.append("")
    if "updates" in found:
        lines += ["One update: " + _heading(found["updates_heading"]), ""]
        lines += [f"| N × d | {' | '.join(UPDATERS)} |", "|---" * (len(UPDATERS) + 1) + "|"]
        for row in found["updates"]:
            cells = [f"{s:.3g} s" if s is not None else "–" for s in (row["seconds"][name] for name in UPDATERS)]
            lines.append(f"| {row['population']:,} × {row['dimension']:,} | {' | '.join(cells)} |")
        fits = {name: exponents(found["updates"], name) for name in UPDATERS}
        cells = [f"N^{n:.2f} · d^{d:.2f}" for n, d in fits.values()]
        lines.append(f"| fitted cost | {' | '.join(cells)} |")
        lines.append("")
    if "solve" in found:
        lines += ["CartPole-v1 solved: " + _heading(found["solve"]), "", *_solve(found["solve"]["seeds"])]
    return "\n".join(lines).rstrip()


def _heading(found: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    note = f"; {found['note']}" if found.get("note") else ""
    return f"{found['date']}, commit {found['commit']}, {found['machine']}; {versions}{note}."


def _solve(contenders: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Seconds to solved of every contender: an unsolved seed is longer than any other."""
    times = {
        name: [seed["seconds"] if seed["solved"] else np.inf for seed in seeds]
        for name, seeds in contenders.items()
        if seeds
    }
    medians = {name: float(np.median(seconds)) for name, seconds in times.items()}
    best = min(median for name, median in medians.items() if name != "esker")
    head = "| contender | solved | seconds, median | worst | best peer ÷ it | env steps, median | steps/s while training |"
    lines = [head, "|---" * 7 + "|"]
    for name, seconds in times.items():
        seeds = contenders[name]
        solved = f"{sum(seed['solved'] for seed in seeds)} of {len(seeds)}"
        rate = sum(seed["steps"] for seed in seeds) / sum(seed["seconds"] for seed in seeds)
        cells = [
            solved,
            _seconds(medians[name]),
            _seconds(max(seconds)),
            f"{best / medians[name]:.2f}" if np.isfinite(medians[name]) else "–",
        ]
        cells += [f"{np.median([seed['steps'] for seed in seeds]):,.0f}", f"{rate:,.0f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _seconds(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "unsolved"


def exponents(rows: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """The exponents of N and of d that fit a library's seconds best, by least squares of logarithms."""
    kept = [row for row in rows if row["seconds"][name] is not None]
    logs = np.log([[row["population"], row["dimension"]] for row in kept])
    seconds = np.log([row["seconds"][name] for row in kept])
    of_population, of_dimension, _ = np.linalg.lstsq(np.column_stack([logs, np.ones(len(kept))]), seconds)[0]
    return float(of_population), float(of_dimension)
