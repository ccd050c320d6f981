"""Which run folders may name code: those made here, and those whose modules the caller named."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from esker.errors import UsageError

Trust = bool | Sequence[str]
IDENTITY = re.compile(r"[0-9a-f]{32}")

# Options whose text may hold a colon and is never imported; every other such text is taken for code.
NOT_CODE = frozenset({"run_dir", "init_from", "device", "address", "working_dir", "env_kwargs", "resources"})
OF_ENVIRONMENT = frozenset({"env", "wrapper"})
OBJECTS = frozenset({"env", "network"})
OF_TRAINING = frozenset({"log"})
OF_CLUSTER = frozenset({"address", "working_dir"})
ADAPTERS = ("GymV21Environment", "GymV26Environment")  # registered ids that make whatever their arguments name


def check_trust(
    path: Path, values: Mapping[str, Any], about: Mapping[str, Any], trust: Trust, without: frozenset[str] = frozenset()
) -> None:
    """Refuse a folder that names code unless it was made here or its modules are trusted. Raises UsageError.

    `values` is config.toml as it was read; options in `without` are not used by the caller.
    """
    named = {option: paths for option, paths in code_named(values).items() if option not in without}
    if not named or trust is True:
        return
    record = _recorded(about, values)
    if record is not None:
        _find_modules(named, record)
        return
    allowed = _modules(trust)
    for option, paths in named.items():
        for given in paths:
            if option in OF_CLUSTER:
                flag = "--" + option.replace("_", "-")
                raise UsageError(
                    f"{str(path)!r} was not made on this machine, and its {option} is {given!r}; "
                    f"if you trust that cluster, add {flag} {given}"
                )
            module = given.partition(":")[0]
            if not allowed & {module, given}:
                raise UsageError(
                    f"{str(path)!r} was not made on this machine, and its {option} would import and run {given!r}; "
                    f"if you trust it, add --trust {module} (in Python: trust=[{module!r}])"
                )


def code_named(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The options that name code by import path, and those that connect to a cluster, with what they name."""
    named: dict[str, list[str]] = {}
    for option, value in values.items():
        texts = [text for text in (value if isinstance(value, list | tuple) else [value]) if isinstance(text, str)]
        if option in OF_CLUSTER:
            found = [text for text in texts if text not in ("", "auto", "local")]
        elif option in NOT_CODE or option.startswith("wandb_"):
            continue
        else:
            found = [text for text in texts if ":" in text or (option == "env" and text.startswith(ADAPTERS))]
            if option in OBJECTS:  # a name in brackets marks an object that exists only in a process: nothing is imported
                found = [text for text in found if "<" not in text]
        if found:
            named[option] = found
    return named


def with_own(trust: Trust, config: Any) -> Trust:
    """What is trusted, and what a request names itself and so imports anyway."""
    own = [path for option, paths in code_named(vars(config)).items() if option not in OF_CLUSTER for path in paths]
    return True if trust is True else [*_modules(trust), *own]


def record_run(identity: str, values: Mapping[str, Any], roots: Sequence[str] = ()) -> None:
    """Remember that a run was made on this machine; where that cannot be written, its code must be trusted by name.

    `roots` are folders from which its modules may be imported, besides those that this process imports them from.
    """
    entry = {"run": identity, "digest": _digest(values), "path": sorted({*_roots(code_named(values)), *roots})}
    with contextlib.suppress(OSError, RuntimeError):
        file = records_file(identity)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, (json.dumps(entry) + "\n").encode())
        finally:
            os.close(descriptor)


def record_change(about: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Remember a run's changed options, if it was made here."""
    if _digest(before) != _digest(after) and _recorded(about, before) is not None:
        record_run(str(about["run"]), after)


def records_file(identity: str) -> Path:
    """Where a run made on this machine is remembered: outside of its folder, readable by its user only."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state"
    folder = home / "esker" / "runs"
    if folder.is_file():
        _split(folder)
    return folder / identity


def _split(file: Path) -> None:
    """Give every run in a former version's file of records a file; the former one stays beside them."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
        status, entries = file.lstat(), [json.loads(line) for line in file.read_text().splitlines()]
        own = status.st_uid == os.geteuid() and not status.st_mode & 0o022
        file.replace(file.with_name("runs.before"))
        file.mkdir(mode=0o700)
        for entry in entries if own else ():
            if IDENTITY.fullmatch(entry["run"]):
                descriptor = os.open(file / entry["run"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "a") as record:
                    record.write(json.dumps(entry) + "\n")


def _modules(trust: Trust) -> set[str]:
    return set() if isinstance(trust, bool) else {trust} if isinstance(trust, str) else set(trust)


def _recorded(about: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The record of a run that was made here and names what it named then."""
    identity = about.get("run")
    if not isinstance(identity, str) or not IDENTITY.fullmatch(identity):  # it becomes the name of a file
        return None
    try:
        with records_file(identity).open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return None
            lines = file.readlines()
    except (OSError, RuntimeError):
        return None
    wanted = _digest(values)
    for line in reversed(lines):
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and entry.get("run") == identity and entry.get("digest") == wanted:
                return entry
    return None


def _digest(values: Mapping[str, Any]) -> str:
    """What decides which code runs: the options that name it, and the arguments that it is given."""
    deciding = {**code_named(values), **{name: value for name, value in values.items() if isinstance(value, dict)}}
    text = json.dumps({name: value for name, value in deciding.items() if value}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _roots(named: Mapping[str, list[str]]) -> list[str]:
    """The folders that this process imports the named modules from."""
    roots = []
    for option, paths in named.items():
        for given in paths:
            module = sys.modules.get(given.partition(":")[0].partition(".")[0])
            file = getattr(module, "__file__", None)
            if option not in OF_CLUSTER and file:
                top = Path(file).resolve()
                roots.append(str(top.parent.parent if top.name == "__init__.py" else top.parent))
    return sorted(set(roots))


def _find_modules(named: Mapping[str, list[str]], record: Mapping[str, Any]) -> None:
    """Let modules that are not on the path be imported from where the run had them."""
    for paths in named.values():
        for given in paths:
            top = given.partition(":")[0].partition(".")[0]
            with contextlib.suppress(ValueError, ImportError):
                if top and top not in sys.modules and importlib.util.find_spec(top) is None:
                    sys.path += [root for root in record.get("path", []) if root not in sys.path and os.path.isdir(root)]
