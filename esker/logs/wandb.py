"""Weights & Biases: the run's id lives in the run folder, so a resumed or moved run continues the same W&B run."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from esker.algorithms.observer import Returns, Row
from esker.errors import first_line
from esker.logs.backend import BackendError
from esker.logs.metrics import FITNESS, STEPS, metrics
from esker.runs.folder import RunFolder

STATE = "wandb.json"
DEFAULT_PROJECT = "esker"
CONNECT_SECONDS = 20.0
FINISH_SECONDS = 60.0


class WeightsAndBiases:
    """Numbers and the histogram of returns, against environment steps."""

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> str | None:
        """Open the W&B run that belongs to this folder, and add those rows that it lacks."""
        self.algo, self.folder = config.algo, folder
        known = state_of(folder)
        self.run, notice = connect(config, folder)
        self.run.define_metric(STEPS)
        self.run.define_metric("*", step_metric=STEPS)
        # Online the server knows what arrived; offline only the folder does.
        self.logged = int(known.get("env_steps", 0)) if self.run.offline else int(self.run.step) - 1
        self.state = {name: getattr(self.run, name) or None for name in ("id", "name", "project", "entity")}
        for row in rows:
            if row["env_steps"] > self.logged:
                self._log(row, None)
        self._keep()
        return notice

    def generation(self, row: Row, returns: Returns | None) -> None:
        """Add a row, at its environment steps."""
        self._log(row, returns)
        self._keep()

    def end(self, reason: str) -> None:
        """Close the W&B run as finished, or as failed."""
        self.run.summary["status"] = reason
        self.run.finish(exit_code=0 if reason.startswith("finished") else 1)

    def _log(self, row: Row, returns: Returns | None) -> None:
        import wandb

        data: dict[str, Any] = dict(metrics(row, self.algo))
        if returns is not None and np.isfinite(returns).any():
            data[FITNESS] = wandb.Histogram(list(returns[np.isfinite(returns)]))
        self.logged = row["env_steps"]
        self.run.log(data, step=self.logged)

    def _keep(self) -> None:
        write_state(self.folder, self.state | {"env_steps": self.logged})


def connect(config: Any, folder: RunFolder) -> tuple[Any, str]:
    """The W&B run of a folder, new or continued, and a line about it. What prevents it raises BackendError."""
    try:
        import wandb
    except ImportError as error:
        raise BackendError("W&B is not installed; pip install 'esker[wandb]'") from error
    mode: Any = config.wandb_mode or os.environ.get("WANDB_MODE", "online")
    if mode in ("online", "shared") and not wandb.login(prompt=False, verify=False):
        raise BackendError("W&B is not logged in; run `wandb login`, set WANDB_API_KEY, or use --wandb-mode offline")
    options = _options(config, folder)
    try:
        run = wandb.init(**options, mode=mode)
    except wandb.errors.AuthenticationError as error:
        raise BackendError(f"W&B does not accept the login; run `wandb login --relogin` ({error})") from error
    except wandb.errors.CommError as error:
        wandb.teardown()  # the failed attempt holds the id
        run = wandb.init(**options, mode="offline")
        return run, f"W&B cannot be reached ({first_line(error)}): logging offline, {_sync(folder)}"
    return run, f"W&B offline: {_sync(folder)}" if run.offline else f"W&B: {run.url}"


def _options(config: Any, folder: RunFolder) -> dict[str, Any]:
    import wandb

    known = state_of(folder)
    about = folder.about()
    return {
        "project": config.wandb_project or known.get("project") or DEFAULT_PROJECT,
        "entity": config.wandb_entity or known.get("entity"),
        "id": config.wandb_id or known.get("id") or uuid.uuid4().hex[:8],
        "name": config.wandb_name or known.get("name") or folder.path.resolve().name,
        "tags": [tag for given in config.wandb_tags for tag in given.split(",")] or None,
        "group": config.wandb_group,
        "config": asdict(config) | {name: about.get(name) for name in ("versions", "fingerprint")},
        "dir": str(folder.path),
        "resume": "allow",
        "settings": wandb.Settings(
            silent=True,
            console="off",  # the live display owns the terminal
            init_timeout=CONNECT_SECONDS,
            finish_timeout=FINISH_SECONDS,  # a lost network must not block the process
            reinit="create_new",
        ),
    }


def state_of(folder: RunFolder) -> dict[str, Any]:
    """What the folder knows of its W&B run: id, name, project, entity, the last step logged. Never a secret."""
    try:
        return dict(json.loads((folder.path / STATE).read_text()))
    except (OSError, ValueError):
        return {}


def write_state(folder: RunFolder, state: dict[str, Any]) -> None:
    """Keep what the folder must know, whole or not at all."""
    temporary = folder.path / f".{STATE}"
    temporary.write_text(json.dumps(state) + "\n")
    temporary.replace(folder.path / STATE)


def _sync(folder: RunFolder) -> str:
    return f"send it later with: wandb sync {folder.path}/wandb/offline-run-*"


def attach(config: Any, folder: RunFolder, files: list[Path], mode: str | None = None) -> str:
    """Add videos, pages and other files to the folder's W&B run. What prevents it raises BackendError."""
    backend = WeightsAndBiases()
    notice = backend.begin(replace(config, wandb_mode=mode or config.wandb_mode), folder, folder.rows())
    media = {}
    for file in files:
        if (item := _media(file)) is not None:
            media[item[0]] = item[1]
        else:
            copy = shutil.copy(file, backend.run.dir)  # W&B would link to it, and a moved run folder break the link
            backend.run.save(copy, base_path=backend.run.dir, policy="now")
    if media:
        backend.run.log(media, step=max(int(backend.run.step), backend.logged + 1))
    backend.end(folder.status())
    return notice or ""


def _media(file: Path) -> tuple[str, Any] | None:
    """Under which name and as what W&B shows a file; nothing for one that it only keeps."""
    import wandb

    if file.suffix in (".mp4", ".gif", ".webm"):
        return f"videos/{file.stem}", wandb.Video(str(file))
    if file.suffix in (".html", ".htm"):
        return f"reports/{file.stem}", wandb.Html(file.read_text(), inject=False)
    return None
