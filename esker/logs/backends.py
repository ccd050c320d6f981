"""Logging back-ends besides the console. One that fails is reported once and dropped; training continues."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from esker.algorithms.observer import Observer, Pulsed, Pulsing, Returns, Row
from esker.config.logs import LOGGERS
from esker.errors import named_line
from esker.logs.backend import Backend, BackendError
from esker.runs.folder import RunFolder
from esker.system.plugins import find_class

BUILT_IN = {
    "csv": "esker.logs.csv_file:CsvFile",
    "tensorboard": "esker.logs.tensorboard:TensorBoard",
    "wandb": "esker.logs.wandb:WeightsAndBiases",
}
METHODS = ("begin", "generation", "end")


class FanOut:
    """An observer that shows a run to the console and to any number of back-ends."""

    def __init__(self, console: Observer, backends: dict[str, Backend]) -> None:
        self.console = console
        self.backends = backends

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> None:
        """A run begins."""
        self.console.begin(config, folder, rows)
        for name, backend in list(self.backends.items()):
            notice = self._guard(name, lambda backend=backend: _text(backend.begin(config, folder, rows)))  # type: ignore[misc]
            if notice:
                self.console.note(notice)

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed."""
        for name, backend in list(self.backends.items()):
            self._guard(name, lambda backend=backend: backend.generation(row, returns))  # type: ignore[misc]
        self.console.generation(row, returns)

    def pulse(self, source: Pulsing | None) -> None:
        """The source of the current generation's progress."""
        if isinstance(self.console, Pulsed):
            self.console.pulse(source)

    def note(self, text: str) -> None:
        """A notice for the user."""
        self.console.note(text)

    def end(self, reason: str) -> None:
        """The run ended."""
        for name, backend in list(self.backends.items()):
            self._guard(name, lambda backend=backend: backend.end(reason))  # type: ignore[misc]
        self.console.end(reason)

    def _guard(self, name: str, call: Callable[[], str | None]) -> str | None:
        try:
            return call()
        except (Exception, SystemExit) as error:
            del self.backends[name]
            why = str(error) if isinstance(error, BackendError) else named_line(error)
            why = " ".join(why.split()).rstrip(".")
            self._warn(f"logging to {name} stopped, training continues without it: {why}")
            return None

    def _warn(self, text: str) -> None:
        if getattr(self.console, "silent", False):  # a note would not be shown
            warnings.warn(text, RuntimeWarning, stacklevel=4)
        self.console.note(text)


class Also:
    """A caller's observer as a back-end: it sees notes too, and what it raises ends the run."""

    def __init__(self, console: Observer, observer: Observer) -> None:
        self.console, self.observer = console, observer
        self.silent = getattr(console, "silent", False)

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> None:
        """A run begins."""
        self.console.begin(config, folder, rows)
        self.observer.begin(config, folder, rows)

    def generation(self, row: Row, returns: Returns | None = None) -> None:
        """A generation was committed."""
        self.console.generation(row, returns)
        self.observer.generation(row, returns)

    def pulse(self, source: Pulsing | None) -> None:
        """The source of the current generation's progress."""
        if isinstance(self.console, Pulsed):
            self.console.pulse(source)

    def note(self, text: str) -> None:
        """A notice for the user."""
        self.console.note(text)
        self.observer.note(text)

    def end(self, reason: str) -> None:
        """The run ended."""
        self.console.end(reason)
        self.observer.end(reason)


def with_backends(console: Observer, names: tuple[str, ...]) -> Observer:
    """The observer that feeds the console and the named back-ends."""
    return FanOut(console, {name: _open(name) for name in dict.fromkeys(names)}) if names else console


def _text(notice: Any) -> str | None:
    """What a back-end's `begin` returned: a line, or nothing."""
    return notice if notice is None else str(notice)


def _open(name: str) -> Backend:
    try:
        return find_logger(name)()
    except (Exception, SystemExit) as error:  # a coordinator may lack what the command had; the fan-out drops it with a note
        return Broken(error)


class Broken:
    """A back-end that could not be made."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> str | None:
        """Raise why it could not be made."""
        raise self.error

    def generation(self, row: Row, returns: Returns | None) -> None:
        """Nothing: it was dropped when the run began."""

    def end(self, reason: str) -> None:
        """Nothing: it was dropped when the run began."""


def find_logger(name: str) -> Callable[[], Backend]:
    """The class of a logger, by name or by path `module:Class`. What does not fit raises UsageError."""
    make: Callable[[], Backend] = find_class("logger", name, BUILT_IN, LOGGERS, METHODS)
    return make
