"""The observer of `esker.Evolution`: lines at every report, and a caller's own observer beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from esker.algorithms.observer import Observer, Row
from esker.errors import Damage


class Lines:
    """Tells the evolution of every row, which reports by `print`; keeps notices and prints them.

    A caller's observer sees everything too; one that is a display replaces what is printed.
    """

    def __init__(self, seen: Callable[[Row], None], notices: list[str], observer: Observer | None, quiet: bool) -> None:
        self._seen, self._notices, self._also = seen, notices, observer
        self.silent = quiet or getattr(observer, "is_display", False)

    def begin(self, config: Any, folder: Any, rows: list[Row]) -> None:
        """The run starts or resumes."""
        if self._also is not None:
            self._also.begin(config, folder, rows)

    def generation(self, row: Row, returns: Any = None) -> None:
        """A generation was committed."""
        self._seen(row)
        if "note" in row:
            self.print(row["note"])
        if self._also is not None:
            self._also.generation(row, returns)

    def note(self, text: str) -> None:
        """Keep a notice, and print it; in silence only damage is printed."""
        self._notices.append(text)
        self.print(text, even_if_silent=isinstance(text, Damage))
        if self._also is not None:
            self._also.note(text)

    def end(self, reason: str) -> None:
        """The run ended."""
        if self._also is not None:
            self._also.end(reason)

    def print(self, text: str, even_if_silent: bool = False) -> None:
        """A line, unless the run is quiet or another observer displays it."""
        if not self.silent or even_if_silent:
            print(text, flush=True)


def describe_row(row: Row, tested: float | None = None) -> str:
    """A generation in one line."""
    center = "–" if row["center_return"] is None else f"{row['center_return']:.6g}"
    best = "–" if row["best_return"] is None else f"{row['best_return']:.6g}"
    test = "" if tested is None else f"  test {tested:.6g}"
    return (
        f"generation {row['generation'] + 1}  reward {center}  best {best}{test}  "
        f"members mean {row['return_mean']:.6g} max {row['return_max']:.6g}  "
        f"sigma {row['sigma']:.3g}  lr {row['lr']:.3g}  {row['wall_time']:.1f} s"
    )
