"""Secrets that processes of one user show each other: files that only their owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from esker.errors import UsageError


def config_folder() -> Path:
    """esker's folder in the user's configuration."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "esker"


def make_token(path: Path) -> None:
    """Write a new secret where there is none. A folder that cannot be written raises UsageError."""
    if path.exists():
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
    except FileExistsError:  # another process was first
        pass
    except OSError as error:
        raise UsageError(f"the token file {str(path)!r} cannot be written: {error.strerror}") from error


def check_private(path: Path) -> None:
    """Refuse a secret that others can read. Raises UsageError."""
    if path.stat().st_mode & 0o077:
        raise UsageError(f"the token file {str(path)!r} can be read by others; run: chmod 600 {path}")
