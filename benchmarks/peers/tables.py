"""The results beside the peers as Markdown: printed by the benchmark, and shown in docs/performance.md."""

from __future__ import annotations

from typing import Any

UPDATERS = ("esker", "evosax", "evox", "evotorch")


def as_markdown(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    lines = [f"{found['date']}, {found['machine']}; {versions}.", ""]
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
    return "\n".join(lines)
