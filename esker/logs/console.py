"""The console: a live display in a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from esker.config.options import ESConfig
from esker.runs.folder import RunFolder

Row = dict[str, Any]
Returns = NDArray[np.float64]
BARS = "▁▂▃▄▅▆▇█"


class Quiet:
    """Shows nothing."""

    def begin(self, config: ESConfig, folder: RunFolder, rows: list[Row]) -> None:
        """A run begins."""

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed."""

    def note(self, text: str) -> None:
        """Something worth knowing happened."""

    def end(self, reason: str) -> None:
        """The run ended."""


class Plain:
    """A line per generation, for files and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, config: ESConfig, folder: RunFolder, rows: list[Row]) -> None:
        """Say what will be done and when it stops."""
        self.config = config
        for line in headline(config, folder, rows):
            self._print(line)

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """One line with what matters."""
        done = fraction_done(self.config, row)
        eta = f"  eta {duration(remaining(row, done))}" if done else ""
        self._print(
            f"generation {row['generation']}  steps {row['env_steps']:,} ({rate(row)})  "
            f"return mean {number(row['return_mean'])} max {number(row['return_max'])}  "
            f"centre {number(row['center_return'])} rank {row['center_rank']} of {row['members'] + 1}  "
            f"length {number(row['episode_length_mean'])}  {details(row)}{eta}"
        )

    def note(self, text: str) -> None:
        """A line that begins with `note:`."""
        self._print(f"note: {text}")

    def end(self, reason: str) -> None:
        """Why it ended."""
        self._print(reason)

    def _print(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)


class Display:
    """A live table with a bar to the stop condition and the curve of the centre's return."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def begin(self, config: ESConfig, folder: RunFolder, rows: list[Row]) -> None:
        """Say what will be done, then show it going on."""
        self.config = config
        self.returns = [row["center_return"] for row in rows]
        for line in headline(config, folder, rows):
            self.console.print(line, highlight=False, markup=False)
        self.live = Live(Text("starting workers …", style="dim"), console=self.console, refresh_per_second=8)
        self.live.start()

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """Show the newest generation."""
        self.returns.append(row["center_return"])
        self.live.update(self.picture(row))

    def note(self, text: str) -> None:
        """A line above the live table."""
        self.live.console.print(Text(f"note: {text}", style="yellow"))

    def end(self, reason: str) -> None:
        """Leave the last picture, and say why it ended."""
        self.live.stop()
        self.console.print(Text(reason, style="bold"))

    def picture(self, row: Row) -> Group:
        """The table of one generation."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for style in ("dim", "bold", "dim", "bold"):
            table.add_column(style=style, no_wrap=True)
        rank, of = row["center_rank"], row["members"] + 1
        cells = [
            ("generation", f"{row['generation']}"),
            ("steps", f"{row['env_steps']:,}  ({rate(row)})"),
            ("centre return", number(row["center_return"])),
            ("best centre", number(row["best_return"])),
            ("return mean", f"{number(row['return_mean'])} ± {number(row['return_std'])}"),
            ("return max", number(row["return_max"])),
            ("centre rank", f"{rank} of {of}"),
            ("episode length", number(row["episode_length_mean"])),
            *((name.replace("_", " "), text) for name, text in _details(row)),
        ]
        cells += [("", "")] * (len(cells) % 2)
        for left, right in zip(cells[0::2], cells[1::2], strict=True):
            table.add_row(*left, *right)
        parts: list[Any] = [table]
        if rank == 1:
            parts.append(
                Text(
                    f"rank 1 of {of}: no member beats the centre, so the gradient tells nothing new here",
                    style="yellow",
                )
            )
        parts.append(Text(sparkline(self.returns, max(20, min(self.console.width - 2, 100))), style="cyan"))
        done = fraction_done(self.config, row)
        if done is not None:
            bar = Table.grid(padding=(0, 1))
            bar.add_row(
                ProgressBar(total=1.0, completed=done, width=40), f"{done:.0%}", f"eta {duration(remaining(row, done))}"
            )
            parts.append(bar)
        return Group(*parts)


def observer_for(console: Console, quiet: bool) -> Quiet | Plain | Display:
    """The observer that suits where the output goes."""
    if quiet:
        return Quiet()
    return Display(console) if console.is_terminal else Plain(console)


def headline(config: ESConfig, folder: RunFolder, rows: list[Row]) -> list[str]:
    """What will be done, where, and when it stops."""
    from esker.algorithms.loop import stop_text

    members = f", {config.population} members a generation" if hasattr(config, "population") else ""
    verb = f"resuming at generation {len(rows)}" if rows else "training"
    return [
        f"{verb}: {config.env} with {config.algo}, seed {config.seed}{members}",
        f"run folder: {folder.path}",
        f"stops at: {stop_text(config)}",
    ]


def _details(row: Row) -> list[tuple[str, str]]:
    """What only some algorithms have, named and short."""
    formats = {"sigma": "{:.3g}", "gradient_norm": "{:.3g}", "critic_updates": "{:,}", "rl_share": "{:.2f}"}
    return [(name, text.format(row[name])) for name, text in formats.items() if row.get(name) is not None]


def details(row: Row) -> str:
    """The same in one line."""
    return "  ".join(f"{name.replace('_', ' ')} {text}" for name, text in _details(row))


def fraction_done(config: ESConfig, row: Row) -> float | None:
    """How far the run is to the nearest of its limits (a goal has no distance)."""
    limits = [
        (row["generation"] + 1, config.generation_limit),
        (row["env_steps"], config.steps),
        (row.get("training_steps", 0), config.training_limit),
        (row["wall_time"], config.wall_time),
    ]
    parts = [at / limit for at, limit in limits if limit]
    return min(max(parts), 1.0) if parts else None


def remaining(row: Row, done: float | None) -> float:
    """Seconds to the stop condition at the pace so far."""
    return row["wall_time"] * (1 - done) / done if done else math.inf


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if math.isinf(seconds):
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def rate(row: Row) -> str:
    """Steps per second of one generation."""
    return f"{row['steps_per_second']:,.0f}/s" if row["steps_per_second"] else "?/s"


def number(value: float | None) -> str:
    """A return, short."""
    return "–" if value is None else f"{value:,.1f}"


def sparkline(values: list[float | None], width: int) -> str:
    """The curve in one line, each character the mean of a stretch."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    step = max(1, -(-len(known) // width))
    means = [sum(known[i : i + step]) / len(known[i : i + step]) for i in range(0, len(known), step)]
    low, span = min(means), (max(means) - min(means)) or 1.0
    return "".join(BARS[round((mean - low) / span * (len(BARS) - 1))] for mean in means)
