"""Tables that cut no name: columns where they fit, records where they do not, one line a row in files and pipes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

GAP = 2  # blanks between columns
NARROWEST = 24  # characters that a column of prose needs to be readable


def print_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    prose: Collection[str] = (),
    styles: Mapping[str, str] | None = None,
) -> None:
    """Print rows under headings. `right` are columns of numbers, `prose` those that may wrap, `styles` colours of values."""
    if not console.is_terminal:
        for line in lines(headings, rows, right):
            print(line, file=console.file)
        return
    widths = _widths(headings, rows)
    fixed = sum(width for width, name in zip(widths, headings, strict=True) if name not in prose)
    wrapped = sum(min(width, NARROWEST) for width, name in zip(widths, headings, strict=True) if name in prose)
    if fixed + wrapped + GAP * (len(headings) - 1) <= console.width:
        console.print(_columns(headings, rows, right, prose, styles or {}))
        return
    for row in rows:
        _record(console, headings, row, styles or {})


def lines(headings: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> list[str]:
    """One line a row, aligned, whole however long."""
    widths = _widths(headings, rows)
    found = []
    for row in (headings, *rows):
        parts = [
            value.rjust(width) if name in right else value.ljust(width)
            for name, value, width in zip(headings, map(_flat, row), widths, strict=True)
        ]
        found.append((" " * GAP).join(parts).rstrip())
    return found


def _flat(value: str) -> str:
    return " ".join(value.split())


def _widths(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(_flat(row[column])) for row in (headings, *rows)) for column in range(len(headings))]


def _columns(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str],
    prose: Collection[str],
    styles: Mapping[str, str],
) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, GAP, 0, 0))
    for name in headings:
        wraps = name in prose
        table.add_column(name, justify="right" if name in right else "left", no_wrap=not wraps, overflow="fold")
    for row in rows:
        table.add_row(*(Text(value, style=styles.get(value, "")) for value in row))
    return table


def _record(console: Console, headings: Sequence[str], row: Sequence[str], styles: Mapping[str, str]) -> None:
    """The first value on a separate line, easy to copy; the others below it, each with its heading."""
    from rich.text import Text

    console.print(Text(row[0], style="bold"), soft_wrap=True)
    line = Text(" ")
    for name, value in zip(headings[1:], row[1:], strict=True):
        part = Text.assemble(" ", (f"{name} ", "dim"), (value, styles.get(value, "")))
        if len(line) > 1 and len(line) + len(part) > console.width:  # a heading and its value stay together
            console.print(line)
            line = Text(" ")
        line.append_text(part).append(" ")
    console.print(line)
