"""Runs the command line in this process and watches it: no traceback, no hang, no code from a file, one line for errors."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from esker.cli import main

SECONDS = 30  # for one command
EXAMPLES = int(os.environ.get("ESKER_FUZZ", "40"))  # cases of each test; `make faults` sets thousands
CANARY = "esker_fuzz_canary"  # a module that leaves a mark when it is imported


class TooLong(BaseException):
    """A command that does not come back."""


def status_of(arguments: Sequence[str]) -> tuple[int, str]:
    """Exit status and errors of a command line; what it must never do fails the test."""
    errors, before = io.StringIO(), sys.path[:]
    with limited(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            status = main(list(arguments))
        except SystemExit as left:  # --help and --version
            status = int(left.code or 0)
    sys.path[:] = before
    said = errors.getvalue()
    assert status in (0, 1, 2, 130), (status, arguments)
    assert "Traceback (most recent call last)" not in said or status == 1, (arguments, said)
    if status == 2:
        last = said.strip().splitlines()[-1]
        assert last.startswith("esker: error: "), (arguments, said)
    assert CANARY not in sys.modules, arguments
    return status, said


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def too_long(number: int, frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def plant_canary(folder: Path) -> None:
    """Put the module that must not be imported where it would be found."""
    (folder / f"{CANARY}.py").write_text("def make(**kwargs):\n    raise RuntimeError('executed')\n")
