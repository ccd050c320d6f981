"""The results beside the peers as Markdown: printed by the benchmark, and shown in docs/performance.md."""

from __future__ import annotations

from typing import Any

import numpy as np

UPDATERS = ("esker", "esker-table", "evosax", "evox", "evotorch")


def as_markdown(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    note = f"; {found['note']}" if found.get("note") else ""
    lines = [f"{found['date']}, commit {found['commit']}, {found['machine']}; {versions}{note}.", ""]
    if "steps" in found:
        lines += ["| environment | contender | steps/s | ÷ best peer | PSS, MB |", "|---|---|---|---|---|"]
        for env, results in found["steps"].items():
            best = max(r["steps_per_second"] for name, r in results.items() if name.split("-")[0] not in ("esker", "raw"))
            for name, r in results.items():
                rate = r["steps_per_second"]
                lines.append(f"| {env} | {name[:-6]} | {rate:,.0f} | {rate / best:.2f} | {r['pss_mb']:,.0f} |")
        lines.append("")
    if "updates" in found:
        lines += [f"| N × d | {' | '.join(UPDATERS)} |", "|---" * (len(UPDATERS) + 1) + "|"]
        for row in found["updates"]:
            cells = [f"{s:.3g} s" if s is not None else "–" for s in (row["seconds"][name] for name in UPDATERS)]
            lines.append(f"| {row['population']:,} × {row['dimension']:,} | {' | '.join(cells)} |")
        fits = {name: exponents(found["updates"], name) for name in UPDATERS}
        cells = [f"N^{n:.2f} · d^{d:.2f}" for n, d in fits.values()]
        lines.append(f"| fitted cost | {' | '.join(cells)} |")
    return "\n".join(lines)


def exponents(rows: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """The exponents of N and of d that fit a library's seconds best, by least squares of logarithms."""
    kept = [row for row in rows if row["seconds"][name] is not None]
    logs = np.log([[row["population"], row["dimension"]] for row in kept])
    seconds = np.log([row["seconds"][name] for row in kept])
    of_population, of_dimension, _ = np.linalg.lstsq(np.column_stack([logs, np.ones(len(kept))]), seconds)[0]
    return float(of_population), float(of_dimension)
