"""The live display of a run in a terminal: numbers in as many columns as fit, the centre's curve, a bar to the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from esker.algorithms.observer import Row
from esker.engines.engine import Pulse
from esker.logs.text import duration, number, rank_text, rate, sparkline, stretches

Cell = tuple[str, str]
GAP = 2  # blanks between two columns
MOST_PAIRS = 4  # of a label and a value in one line
FORMATS = {
    "sigma": "{:.3g}",
    "gradient_norm": "{:.3g}",
    "critic_updates": "{:,}",
    "critic_loss": "{:.3g}",
    "actor_loss": "{:.3g}",
    "rl_share": "{:.2f}",
}


def pulse_text(pulse: Pulse) -> str:
    """A generation's progress in one line."""
    part = f"{pulse.done:,} of {pulse.of:,} {pulse.unit}, " if pulse.of else ""
    return f"{part}{pulse.steps:,} steps"


def picture(
    console: Console,
    row: Row,
    returns: Sequence[float | None],
    done: float | None,
    *,
    finished: bool = False,
    pulse: Pulse | None = None,
) -> RenderableType:
    """One generation: its numbers, the curve so far, and how far the run is."""
    parts: list[RenderableType] = [columns(cells(row), console.width)]
    if row["center_rank"] == 1:
        text = f"rank {rank_text(row)}: no member beats the centre, so there is little to learn from"
        parts.append(Text(text, style="yellow"))
    parts += curve(returns, console.width)
    if pulse is not None:
        parts.append(Text(f"generation {row['generation'] + 1} under way: {pulse_text(pulse)}", style="dim"))
    if done is not None or finished:
        parts.append(bar(row, done, console.width, finished))
    return Group(*parts)


def cells(row: Row) -> list[Cell]:
    """The labels and values of a generation."""
    return [
        ("generation", f"{row['generation']:,}"),
        ("steps", f"{row['env_steps']:,} ({rate(row)})"),
        ("centre return", number(row["center_return"])),
        ("best running mean", number(row["best_return"])),
        ("return mean", f"{number(row['return_mean'])} ± {number(row['return_std'])}"),
        ("return max", number(row["return_max"])),
        ("centre rank", rank_text(row)),
        ("episode length", number(row["episode_length_mean"])),
        *((name.replace("_", " "), text) for name, text in details(row)),
    ]


def details(row: Row) -> list[Cell]:
    """What only some algorithms have, named and short."""
    return [(name, text.format(row[name])) for name, text in FORMATS.items() if row.get(name) is not None]


def columns(pairs: Sequence[Cell], width: int) -> Table:
    """Labels and values side by side, as many pairs in a line as fit without cutting any."""
    across = next((n for n in range(MOST_PAIRS, 1, -1) if _needed(pairs, n) <= width), 1)
    table = Table(box=None, show_header=False, padding=(0, GAP, 0, 0), pad_edge=False)
    for _ in range(across):
        table.add_column(style="dim", no_wrap=True)
        table.add_column(style="bold", overflow="fold")
    padded = [*pairs, *[("", "")] * (-len(pairs) % across)]
    for start in range(0, len(padded), across):
        table.add_row(*(text for pair in padded[start : start + across] for text in pair))
    return table


def _needed(pairs: Sequence[Cell], across: int) -> int:
    """The width of these pairs with `across` in a line."""
    widest = [max(len(pair[part]) for pair in pairs[start::across]) for start in range(across) for part in (0, 1)]
    return sum(widest) + GAP * len(widest)


def curve(returns: Sequence[float | None], width: int) -> list[RenderableType]:
    """The centre's return over all generations, and the values of its lowest and highest bar."""
    room = max(20, width - 2)
    line, means = sparkline(returns, room), stretches(returns, room)
    if not line:
        return []
    scale = f"centre return: ▁ {number(min(means))}  █ {number(max(means))}, generations 0 to {len(returns) - 1:,}"
    return [Text(line, style="cyan"), Text(scale, style="dim")]


def bar(row: Row, done: float | None, width: int, finished: bool) -> Table:
    """How far the run is, and how long it will take; a finished run is at its end, whichever condition ended it."""
    part = 1.0 if finished else done or 0.0
    left = f"took {duration(row['wall_time'])}" if finished else f"eta {duration(remaining(row, done))}"
    grid = Table.grid(padding=(0, 1))
    # Rounding up would show a run at its end that is not.
    grid.add_row(ProgressBar(total=1.0, completed=part, width=max(10, width - 28)), f"{math.floor(100 * part)}%", left)
    return grid


def remaining(row: Row, done: float | None) -> float:
    """Seconds to the stop condition at the pace so far."""
    return row["wall_time"] * (1 - done) / done if done else math.inf
