"""The run folder: configuration, facts, journal, checkpoints, and who is working in it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import secrets
import tomllib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esker.algorithms.facts import Facts
from esker.algorithms.snapshot import Snapshot
from esker.config.build import build, optional_names, to_toml
from esker.config.legacy import stored
from esker.errors import Damage, RunError, UsageError
from esker.runs import checkpoints
from esker.runs.checkpoints import DamagedCheckpoint
from esker.runs.facts import Scan, append, load
from esker.runs.facts import scan as scan_facts
from esker.runs.files import open_plain, read_plain, read_small, refuse_link, stamp_of, write_whole
from esker.runs.journal import best_return, parse_rows, with_final
from esker.runs.seals import Broken, open_json, open_toml, seal_json, seal_toml
from esker.runs.trust import Trust, check_trust, record_run
from esker.system import disk

DECIDING = ("lock", "config.toml", "about.json", "facts", "journal.jsonl", "checkpoints", "best", "latest", "replay")
WRITTEN = (*DECIDING, "status", "final.json", "metrics.csv", "tensorboard", "wandb")
ABOUT_BEGINS = ("run", "observation_space", "parameters")  # descriptions without a checksum, of older versions


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
        self.damage: list[Damage] = []  # found in configuration or description, and repaired from a checkpoint's copies
        self._identity: str | None = None
        self._trust: Trust = False
        self._lock: Any = None
        self._rows: tuple[Any, list[dict[str, Any]]] | None = None
        self._scanned: tuple[Any, Scan] | None = None

    @classmethod
    def create(cls, path: Path, config: Any, about: dict[str, Any]) -> RunFolder:
        """A new run folder. One that is in use or cannot be written raises UsageError."""
        folder = cls(path)
        folder._refuse_other_content()
        try:
            disk.make_folder(folder.checkpoints)
            folder.lock()
            folder._refuse_other_content()  # another process may have begun a run here just now
            about = {"run": secrets.token_hex(16), **about}
            write_whole(folder.about_file, seal_json(about))
            folder.write_config(config)  # last: a folder without it is not a run yet
        except OSError as error:
            raise UsageError(f"run folder {str(path)!r} cannot be written: {error.strerror}") from error
        finally:
            folder.unlock()
        record_run(about["run"], folder.values())
        folder._trust = True
        return folder

    def _refuse_other_content(self) -> None:
        """Refuse a folder that holds anything but an unfinished start of a run."""
        path = self.path
        if not path.exists():
            return
        if self.config_file.exists():
            raise UsageError(f"run folder {str(path)!r} already holds a run; continue it with: esker resume {path}")
        begun = {"lock", "about.json", "checkpoints", ".about.json", ".config.toml"}
        if not path.is_dir() or {file.name for file in path.iterdir()} - begun or any(path.glob("checkpoints/[0-9]*")):
            raise UsageError(f"run folder {str(path)!r} is not empty; choose another --run-dir")

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder. Anything else raises UsageError."""
        folder = cls(path)
        if is_checkpoint(path):
            raise UsageError(f"{str(path)!r} is one checkpoint, not a run folder; `esker eval` and `esker render` take it")
        if not folder.config_file.is_file() and not any(folder.checkpoints.glob("[0-9]*/config.toml")):
            what = "is not a run folder (it has no config.toml)" if path.is_dir() else "does not exist"
            raise UsageError(f"{str(path)!r} {what}; `esker train` makes one")
        return folder

    def values(self) -> dict[str, Any]:
        """The options as config.toml has them, or an intact copy of it."""
        return self._intact(self.config_file, open_toml, "; if you edited it, delete its first line")

    def write_config(self, config: Any) -> None:
        """Write config.toml, whole or not at all."""
        write_whole(self.config_file, seal_toml(to_toml(config)), durable=True)

    def _intact(self, file: Path, read: Callable[[str], dict[str, Any]], hint: str = "") -> dict[str, Any]:
        """What a file holds, or the newest intact copy of it next to a checkpoint. None at all raises UsageError."""
        try:
            return read(read_small(file))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        for generation in reversed(checkpoints.generations(self.checkpoints)):
            name = checkpoints.folder_name(generation)
            with contextlib.suppress(OSError, ValueError):
                values = read(read_small(self.checkpoints / name / file.name))
                notice = Damage(f"{file.name} cannot be used: {reason}; using the copy in checkpoint {name}{hint}")
                if notice not in self.damage:
                    self.damage.append(notice)
                return values
        raise UsageError(f"{str(file)!r} cannot be read: {reason}".replace("\n", " "))

    def check_trust(self, trust: Trust, without: frozenset[str] = frozenset()) -> None:
        """Refuse a folder from elsewhere that names untrusted code. Raises UsageError."""
        self._trust = trust
        about, values = {}, {}
        with contextlib.suppress(OSError, ValueError, RecursionError):  # its content, even if a checksum does not match
            about = json.loads(read_small(self.about_file))
        with contextlib.suppress(OSError, ValueError, RecursionError):
            values = tomllib.loads(read_small(self.config_file))
        check_trust(self.path, values, about if isinstance(about, dict) else {}, trust, without)
        check_trust(self.path, self.values(), self.about(), trust, without)

    @property
    def algo(self) -> str:
        """The algorithm that the run was made with."""
        algo = self.values().get("algo")
        if not isinstance(algo, str):
            raise UsageError(f"{str(self.config_file)!r} cannot be read: it names no algorithm")
        return algo

    def config(self, options_of: Callable[[str], type[Any]]) -> Any:
        """The resolved configuration, of the class that `options_of` names for its algorithm."""
        values, about = self.values(), self.about() if self.about_file.exists() else {}
        check_trust(self.path, values, about, self._trust, without=frozenset(values) - {"algo"})  # it may be a module's
        try:
            kind = options_of(self.algo)
        except UsageError as error:
            raise UsageError(f"{str(self.path)!r}: {error}") from error
        unset = {name: None for name in optional_names(kind) if name not in values}
        return build(kind, unset, stored(values))

    def about(self) -> dict[str, Any]:
        """What the run began with: spaces, numeric fingerprint, versions."""
        return self._intact(self.about_file, _open_about)

    @property
    def identity(self) -> str | None:
        """The unique id in this run's records and snapshots."""
        if self._identity is None and self.about_file.exists():
            found = self.about().get("run")
            self._identity = found if isinstance(found, str) else None
        return self._identity

    def lock(self) -> None:
        """Claim the folder for this process, until it ends; what a crash left in it is cleared away."""
        self.refuse_links()
        self.unlock()
        try:
            self._lock = disk.claim(self.path / "lock")
        except OSError as error:
            raise UsageError(f"run folder {str(self.path)!r} is in use by another process") from error
        checkpoints.tidy(self.checkpoints)

    def refuse_links(self) -> None:
        """Refuse to write through links in the folder: they may lead anywhere. Raises UsageError."""
        for file in (*WRITTEN, *(path.name for path in self.checkpoints.glob("*"))):
            refuse_link(self.path / file if file in WRITTEN else self.checkpoints / file)

    def unlock(self) -> None:
        """Let others work in the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def in_use(self) -> bool:
        """Whether a process is working in the folder now."""
        try:
            with open_plain(self.path / "lock") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except (FileNotFoundError, ValueError):
            return False
        except OSError:
            return True
        return False

    def commit(self, facts: Facts) -> None:
        """Make a generation a fact. A disk that does not take it raises RunError; nothing before is lost."""
        try:
            append(self.facts_file, facts, self.identity)
        except OSError as error:
            raise RunError(f"generation {int(facts.generation[0])} could not be committed: {error.strerror}") from error

    def facts(self, first: int = 0, chosen: Collection[int] | None = None) -> Iterator[Facts]:
        """The committed generations from `first` on, or the `chosen` of them, in order, up to one whose record is lost."""
        found = self.scan()
        data = read_plain(self.facts_file) if found.records else b""
        for generation in range(first, found.reach(first)):
            if chosen is None or generation in chosen:
                yield load(data, found.records[generation])

    def scan(self) -> Scan:
        """What the file of facts holds, read again only when it has changed."""
        identity = self.identity
        try:
            stamp = stamp_of(self.facts_file)
            if self._scanned is None or self._scanned[0] != stamp:
                self._scanned = stamp, scan_facts(read_plain(self.facts_file), identity)
        except FileNotFoundError:
            return scan_facts(b"")
        except ValueError as error:
            return replace(scan_facts(b""), problems=(str(error),))
        return self._scanned[1]

    def committed(self) -> int:
        """How many generations are committed: as far as records lead from the beginning, or from an intact snapshot."""
        found = self.scan()
        count = found.reach(0)
        for generation in reversed(checkpoints.generations(self.checkpoints)):
            if generation <= count:
                break
            with contextlib.suppress(DamagedCheckpoint):
                checkpoints.read(self.checkpoints / checkpoints.folder_name(generation), self.identity)
                return found.reach(generation)
        return count

    def write_row(self, row: dict[str, Any]) -> None:
        """Add a generation to the journal."""
        disk.append(self.journal_file, (json.dumps(row) + "\n").encode())

    def write_final(self, reading: dict[str, Any]) -> None:
        """Keep what was seen when the run ended, next to the journal, and let `best` name what was chosen then."""
        write_whole(self.path / "final.json", json.dumps(reading) + "\n")
        chosen = reading.get("best_generation")
        if chosen is not None and (self.checkpoints / checkpoints.folder_name(chosen)).is_dir():
            checkpoints.point(self.best_file, chosen)

    def concluded(self, generation: int) -> bool:
        """Whether that is the generation with which it ended, and its best was chosen then."""
        last = self.judged_rows()[-1:]
        return len(self.judged_rows()) > len(self.rows()) and last[0]["generation"] == generation

    def best_return(self, rows: list[dict[str, Any]] | None = None) -> float | None:
        """The best centre's mean return; `rows`: the last of them suffice."""
        return best_return(self.judged_rows(rows))

    def judged_rows(self, rows: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """The journal, followed by the last centre's evaluation."""
        return with_final(self.rows() if rows is None else rows, self.path / "final.json")

    def rows(self) -> list[dict[str, Any]]:
        """The journal, up to the first line that cannot be read; parsed again only when it has changed."""
        stamp = stamp_of(self.journal_file)
        if self._rows is None or self._rows[0] != stamp:
            self._rows = stamp, parse_rows(self.journal_text())
        return list(self._rows[1])

    def journal_text(self) -> str:
        """The journal as it is; empty where there is none."""
        try:
            return read_plain(self.journal_file).decode(errors="replace")
        except (OSError, ValueError):
            return ""

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        """Write a snapshot and let `best` or `latest` name it."""
        path = checkpoints.write(self.checkpoints, snapshot, beside=(self.config_file, self.about_file), run=self.identity)
        if best:
            checkpoints.point(self.best_file, snapshot.generation)
        if latest:
            checkpoints.point(self.latest_file, snapshot.generation)
        if self.on_checkpoint is not None:
            self.on_checkpoint(Checkpoint(path, snapshot.generation, best))

    def prune(self, keep: int | None, spared: Collection[int] = ()) -> None:
        """Remove all but the newest snapshots, the first, the best and those that are spared."""
        if keep is None:
            return
        kept = {0, checkpoints.pointed(self.best_file), checkpoints.pointed(self.latest_file), *spared}
        for generation in checkpoints.generations(self.checkpoints)[:-keep]:
            if generation not in kept:
                checkpoints.remove(self.checkpoints, generation)

    def newest(self, at_most: int) -> tuple[Snapshot | None, list[str]]:
        """The newest intact snapshot not after a generation, and what was found damaged on the way."""
        notices: list[str] = []
        for generation in reversed(checkpoints.generations(self.checkpoints)):
            if generation > at_most:
                continue
            try:
                path = self.checkpoints / checkpoints.folder_name(generation)
                return checkpoints.read(path, self.identity), notices
            except DamagedCheckpoint as error:
                notices.append(Damage(f"checkpoint {error}; using an older one and replaying the facts"))
        return None, notices

    def stored(self, generation: int) -> Snapshot | None:
        """The intact snapshot of a generation, if there is one."""
        snapshot, _ = self.newest(generation)
        return snapshot if snapshot is not None and snapshot.generation == generation else None

    def write_status(self, text: str) -> None:
        """Write the run's status, one line."""
        write_whole(self.status_file, text + "\n")

    def status(self) -> str:
        """running, finished, interrupted, failed or crashed; with the reason where there is one."""
        if self.in_use():
            return "running"
        try:
            text = " ".join(read_small(self.status_file).split())
        except (OSError, ValueError):
            text = ""
        return "crashed" if text in ("", "running") else text


def _open_about(text: str) -> dict[str, Any]:
    """The description in a text. One that is damaged, or describes nothing, raises Broken."""
    values = open_json(text, unsealed=ABOUT_BEGINS)
    if "parameters" not in values and not {"observation_space", "action_space"} <= values.keys():
        raise Broken("it describes neither spaces nor parameters")
    return values


def is_checkpoint(path: Path) -> bool:
    """Whether a folder is one checkpoint, on its own or inside a run."""
    return (path / "state.safetensors").is_file()
