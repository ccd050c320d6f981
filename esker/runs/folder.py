"""The run folder: configuration, facts, journal, checkpoints, and who is working in it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.config.build import build, to_toml
from esker.errors import RunError, UsageError
from esker.runs import checkpoints
from esker.runs.checkpoints import DamagedCheckpoint, Snapshot
from esker.runs.facts import Facts, append
from esker.runs.facts import read as read_facts
from esker.runs.trust import Trust, check_trust, record_run


@dataclass(frozen=True)
class Checkpoint:
    """A snapshot that was just written; `best`: the best centre so far."""

    path: Path
    generation: int
    best: bool


class RunFolder:
    """One run's files. Paths are public: others script against them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.toml"
        self.facts_file = path / "facts"
        self.journal_file = path / "journal.jsonl"
        self.checkpoints = path / "checkpoints"
        self.best_file = path / "best"
        self.latest_file = path / "latest"
        self.status_file = path / "status"
        self.about_file = path / "about.json"
        self.on_checkpoint: Callable[[Checkpoint], None] | None = None
        self._lock: Any = None

    @classmethod
    def create(cls, path: Path, config: Any, about: dict[str, Any]) -> RunFolder:
        """A new run folder. One that is in use or cannot be written raises UsageError."""
        folder = cls(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            if folder.config_file.exists():
                raise UsageError(f"run folder {str(path)!r} holds a run already; continue it with: esker resume {path}")
            raise UsageError(f"run folder {str(path)!r} is not empty; choose another --run-dir")
        try:
            folder.checkpoints.mkdir(parents=True, exist_ok=True)
            folder.config_file.write_text(to_toml(config))
            about = {"run": secrets.token_hex(16), **about}
            folder.about_file.write_text(json.dumps(about, indent=1) + "\n")
        except OSError as error:
            raise UsageError(f"run folder {str(path)!r} cannot be written: {error.strerror}") from error
        record_run(about["run"], folder.values())
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder. A folder that is none raises UsageError."""
        folder = cls(path)
        if is_checkpoint(path):
            raise UsageError(f"{str(path)!r} is one checkpoint, not a run folder; `esker eval` and `esker render` take it")
        if not folder.config_file.is_file():
            what = "is not a run folder (it has no config.toml)" if path.is_dir() else "does not exist"
            raise UsageError(f"{str(path)!r} {what}; `esker train` makes one")
        return folder

    def values(self) -> dict[str, Any]:
        """The options as config.toml has them."""
        try:
            return tomllib.loads(self.config_file.read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"{str(self.config_file)!r} cannot be read: {error}".replace("\n", " ")) from error

    def check_trust(self, trust: Trust, without: frozenset[str] = frozenset()) -> None:
        """Refuse a folder from elsewhere that names code nobody trusts. Raises UsageError."""
        check_trust(self.path, self.values(), self.about(), trust, without)

    def config(self, kinds: dict[str, type[Any]]) -> Any:
        """The resolved configuration."""
        values = self.values()
        try:
            if values.get("algo") == "function" and "function" not in kinds:
                raise UsageError(
                    f"{str(self.path)!r} is a run of esker.Evolution, whose model and reward only Python has; "
                    "continue it there with esker.Evolution.resume(run_dir, model, reward)"
                )
            kind = kinds[values.get("algo", "")]
        except KeyError as error:
            raise UsageError(f"{str(self.config_file)!r} cannot be read: unknown algorithm {error}") from error
        unset = {name: None for name in _optional(kind) if name not in values}
        return build(kind, unset, values)

    def about(self) -> dict[str, Any]:
        """What the run began with: spaces, numeric fingerprint, versions."""
        try:
            return dict(json.loads(self.about_file.read_text()))
        except (OSError, ValueError) as error:
            raise UsageError(f"{str(self.about_file)!r} cannot be read: {error}") from error

    def lock(self) -> None:
        """Claim the folder for this process, until it ends."""
        self._lock = (self.path / "lock").open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(f"run folder {str(self.path)!r} is in use by another process") from error

    def unlock(self) -> None:
        """Let others work in the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def in_use(self) -> bool:
        """Whether a process is working in the folder now."""
        try:
            with (self.path / "lock").open("r") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def commit(self, facts: Facts) -> None:
        """Make a generation a fact. A disk that does not take it raises RunError; nothing before is lost."""
        try:
            append(self.facts_file, facts)
        except OSError as error:
            raise RunError(f"generation {int(facts.generation[0])} could not be committed: {error.strerror}") from error

    def facts(self, first: int = 0) -> Iterator[Facts]:
        """The committed generations from `first` on, in order."""
        for number, (facts, _) in enumerate(read_facts(self.facts_file)):
            if number >= first:
                yield facts

    def mend(self) -> list[str]:
        """Cut off what a crash left half-written; answers what was done. The generation in flight was never a fact."""
        said = []
        end, count = 0, 0
        for count, (_, end) in enumerate(read_facts(self.facts_file), start=1):  # noqa: B007 - the last ones count
            pass
        if self.facts_file.exists() and self.facts_file.stat().st_size > end:
            os.truncate(self.facts_file, end)
            said.append(f"facts ended in a damaged record: cut back to {count} committed generations")
        rows = self.rows()
        kept = [row for number, row in enumerate(rows) if row["generation"] == number and number < count]
        text = "".join(json.dumps(row) + "\n" for row in kept)
        if self.journal_file.exists() and self.journal_file.read_text(errors="replace") != text:
            self.journal_file.write_text(text)
            said.append(f"journal.jsonl was damaged or ahead: rewritten from generation {len(kept)} on")
        return said

    def write_row(self, row: dict[str, Any]) -> None:
        """Add a generation to the journal."""
        with self.journal_file.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def rows(self) -> list[dict[str, Any]]:
        """The journal, up to the first line that cannot be read."""
        rows: list[dict[str, Any]] = []
        if not self.journal_file.exists():
            return rows
        for line in self.journal_file.read_text(errors="replace").splitlines():
            try:
                row = json.loads(line)
                row["generation"]
            except (ValueError, TypeError, KeyError):
                break
            rows.append(row)
        return rows

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        """Write a snapshot and let `best` or `latest` name it."""
        path = checkpoints.write(self.checkpoints, snapshot, beside=(self.config_file, self.about_file))
        if best:
            checkpoints.point(self.best_file, snapshot.generation)
        if latest:
            checkpoints.point(self.latest_file, snapshot.generation)
        if self.on_checkpoint is not None:
            self.on_checkpoint(Checkpoint(path, snapshot.generation, best))

    def prune(self, keep: int | None) -> None:
        """Remove all but the newest snapshots, the first and the best."""
        if keep is None:
            return
        import shutil

        spared = {0, checkpoints.pointed(self.best_file), checkpoints.pointed(self.latest_file)}
        for generation in checkpoints.generations(self.checkpoints)[:-keep]:
            if generation not in spared:
                shutil.rmtree(self.checkpoints / checkpoints.folder_name(generation), ignore_errors=True)

    def newest(self, at_most: int) -> tuple[Snapshot | None, list[str]]:
        """The newest intact snapshot not after a generation, and what was found damaged on the way."""
        said: list[str] = []
        for generation in reversed(checkpoints.generations(self.checkpoints)):
            if generation > at_most:
                continue
            try:
                return checkpoints.read(self.checkpoints / checkpoints.folder_name(generation)), said
            except DamagedCheckpoint as error:
                said.append(f"checkpoint {error}; using an older one and replaying the facts")
        return None, said

    def write_status(self, text: str) -> None:
        """Say how the run stands, in one line."""
        self.status_file.write_text(text + "\n")

    def status(self) -> str:
        """running, finished, interrupted, failed or crashed; with the reason where there is one."""
        if self.in_use():
            return "running"
        text = self.status_file.read_text().strip() if self.status_file.exists() else ""
        return "crashed" if text in ("", "running") else text


def is_checkpoint(path: Path) -> bool:
    """Whether a folder is one checkpoint, on its own or inside a run."""
    return (path / "state.safetensors").is_file()


def default_path(env: str, algo: str, seed: int) -> Path:
    """runs/<env>/<algo>-s<seed>-<time>, with a number behind it if that exists."""
    base = Path("runs") / env.replace("/", "-").replace(":", "-") / f"{algo}-s{seed}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def _optional(kind: type[Any]) -> list[str]:
    import types
    import typing
    from dataclasses import fields

    hints = typing.get_type_hints(kind)
    return [f.name for f in fields(kind) if types.NoneType in typing.get_args(hints[f.name])]
