"""What the generated tables share: stored results, Markdown, numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def load(name: str) -> Any:
    """A results file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def stored(name: str) -> bool:
    """Whether there is such a results file."""
    return (RESULTS / f"{name}.json").exists()


def table(head: list[str], rows: list[list[Any]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in row) + " |" for row in lines)


def number(value: float) -> str:
    """A return: whole from 25 up, one decimal below."""
    return f"{value:,.0f}" if abs(value) >= 25 else f"{value:.1f}"


def million(steps: int | None) -> str:
    """Steps in millions."""
    return "–" if steps is None else f"{steps / 1e6:.2f}M" if steps < 1e6 else f"{steps / 1e6:.1f}M"
