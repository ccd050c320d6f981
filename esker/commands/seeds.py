"""Seeds side by side: each a run in its own process, as many at once as cores allow, shown together."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.live import Live
from rich.table import Table

from esker.errors import RunError, UsageError
from esker.logs.text import number
from esker.runs.listing import last_row
from esker.runs.runner import terminate_as_interrupt

POLL_SECONDS = 0.2
MOST_SEEDS = 10_000
OWN = ("--seeds", "--jobs", "--run-dir", "--workers")  # flags that are not passed on to the processes as given
SWITCHES = ("--quiet",)  # nor these, which have no value


def parse_seeds(text: str) -> list[int]:
    """The seeds of `0..4` or `1,2,5`. Anything else raises UsageError."""
    if match := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        seeds = list(range(int(match[1]), min(int(match[2]), int(match[1]) + MOST_SEEDS) + 1))
    elif re.fullmatch(r"\d+(,\d+)*", text):
        seeds = list(dict.fromkeys(int(part) for part in text.split(",")))
    else:
        raise UsageError(f"seeds is {text!r}; expected a range such as 0..4 or a list such as 1,2,5")
    if not seeds:
        raise UsageError(f"seeds is {text!r}, an empty range; expected the smaller number first")
    if len(seeds) > MOST_SEEDS:
        raise UsageError(f"seeds is {text!r}; expected at most {MOST_SEEDS:,} of them")
    return seeds


@dataclass(frozen=True)
class Shares:
    """How many seeds run at once, and the workers of each."""

    jobs: int
    workers: int | None  # None: as many as a run takes by default


def shares(seeds: int, cores: int, jobs: int | None, workers: int | None, has_workers: bool) -> Shares:
    """Divide the cores among seeds: one core per seed if there are at least as many seeds as cores, else several cores each.

    An algorithm without workers (one with gradients) keeps two cores busy.
    """
    if jobs is None:
        jobs = cores // max(1, workers) if workers is not None else cores if has_workers else cores // 2
    jobs = max(1, min(jobs, seeds))
    if workers is not None or not has_workers:
        return Shares(jobs, workers)
    return Shares(jobs, max(1, cores // jobs) if jobs > 1 else None)


@dataclass
class SeedRun:
    """One seed's process, and the lines of its output that are kept."""

    seed: int
    process: subprocess.Popen[str] | None = None
    path: Path | None = None
    ended: str | None = None
    errors: list[str] = field(default_factory=list)


class SideBySide:
    """Starts, watches and ends the processes of some seeds."""

    def __init__(
        self, seeds: Sequence[int], command: Callable[[int], list[str]], jobs: int, console: Console, quiet: bool
    ) -> None:
        self.runs = [SeedRun(seed) for seed in seeds]
        self.command = command
        self.jobs = jobs
        self.console = console
        self.quiet = quiet
        self.shown: set[str] = set()

    def run(self) -> list[Path]:
        """Train all seeds; returns their folders. A seed that fails raises RunError when the others have ended."""
        live = Live(console=self.console, get_renderable=self.table, refresh_per_second=2)
        shown = self.console.is_terminal and not self.quiet
        if shown:
            live.start()
        try:
            with terminate_as_interrupt():
                self._work()
        except KeyboardInterrupt:
            self._interrupt()
            paths = " ".join(str(run.path) for run in self.runs if run.path)
            raise KeyboardInterrupt(f"interrupted; continue each with: esker resume RUN, for {paths}") from None
        finally:
            if shown:
                live.stop()
        failed = [run for run in self.runs if run.process is None or run.process.returncode]
        if failed:
            texts = "\n".join(f"seed {run.seed}: {' '.join(run.errors) or 'ended without a message'}" for run in failed)
            status = {run.process.returncode for run in failed if run.process}
            raise UsageError(texts.splitlines()[0]) if status == {2} else RunError(texts)
        return [run.path for run in self.runs if run.path is not None]

    def _work(self) -> None:
        waiting = list(self.runs)
        while waiting or any(self._busy(run) for run in self.runs):
            while waiting and sum(self._busy(run) for run in self.runs) < self.jobs:
                self._start(waiting.pop(0))
            time.sleep(POLL_SECONDS)

    def _start(self, run: SeedRun) -> None:
        run.process = process = subprocess.Popen(
            self.command(run.seed), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        assert process.stderr is not None
        for stream, take in ((process.stdout, self._line), (process.stderr, self._error)):
            threading.Thread(target=_read, args=(stream, run, take), daemon=True).start()

    def _line(self, run: SeedRun, line: str) -> None:
        """Remember where a run is and why it ended; print each note once, whichever seed has it."""
        if line.startswith("run folder: "):
            run.path = Path(line.removeprefix("run folder: "))
        elif line.startswith("finished: "):
            run.ended = line
            self._say(f"seed {run.seed} {line}")
        elif line.startswith("note: ") and line not in self.shown:
            self.shown.add(line)
            self._say(line)

    def _error(self, run: SeedRun, line: str) -> None:
        run.errors.append(line.removeprefix("esker: error: "))

    def _say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _busy(self, run: SeedRun) -> bool:
        return run.process is not None and run.process.poll() is None

    def _interrupt(self) -> None:
        """Let every run save and end; by SIGTERM, because a script's background process has SIGINT ignored."""
        for run in self.runs:
            if run.process is not None and self._busy(run):
                run.process.terminate()
        for run in self.runs:
            if run.process is not None:
                run.process.wait()

    def table(self) -> Table:
        """Every seed and its progress."""
        table = Table(box=None, header_style="dim", pad_edge=False)
        for name in ("seed", "generation", "steps", "centre", "best"):
            table.add_column(name, justify="right", no_wrap=True)
        table.add_column("status", overflow="fold")
        for run in self.runs:
            row = last_row(run.path / "journal.jsonl") if run.path else {}
            counts = (f"{row['generation']:,}", f"{row['env_steps']:,}") if row else ("–", "–")
            returns = (number(row.get("center_return")), number(row.get("best_return")))
            table.add_row(str(run.seed), *counts, *returns, self._status(run))
        return table

    def _status(self, run: SeedRun) -> str:
        if run.process is None:
            return "waiting"
        return "running" if self._busy(run) else run.ended or "failed"


def command_of(arguments: Sequence[str], run_dir: str | None, workers: int | None) -> Callable[[int], list[str]]:
    """The command that trains one seed: the same one with --seed instead of --seeds."""
    kept = without(arguments, OWN)

    def command(seed: int) -> list[str]:
        flags = ["--seed", str(seed)]
        flags += [] if run_dir is None else ["--run-dir", str(Path(run_dir) / f"s{seed}")]
        flags += [] if workers is None else ["--workers", str(workers)]
        return [sys.executable, "-m", "esker", "train", *(part for part in kept if part not in SWITCHES), *flags]

    return command


def without(arguments: Sequence[str], flags: Sequence[str]) -> list[str]:
    """A command line without some flags and their values."""
    kept, skip = [], False
    for part in arguments:
        if skip:
            skip = False
        elif part in flags:
            skip = True
        elif part.partition("=")[0] not in flags:
            kept.append(part)
    return kept


def _read(stream: IO[str], run: SeedRun, take: Callable[[SeedRun, str], None]) -> None:
    for line in stream:
        if line.strip():
            take(run, line.rstrip("\n"))
