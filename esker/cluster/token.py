"""The token that nodes and drivers of a cluster show each other: in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from esker.errors import UsageError


def token_file() -> Path:
    """Where the token is: $RAY_AUTH_TOKEN_PATH, or esker's own file in the user's configuration folder."""
    given = os.environ.get("RAY_AUTH_TOKEN_PATH")
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Path(given) if given else base / "esker" / "ray-token"


def ensure_token() -> Path:
    """The token's file, made where there is none. One that others can read raises UsageError."""
    path = token_file()
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
        except FileExistsError:  # another process was first
            pass
        except OSError as error:
            raise UsageError(f"the token file {str(path)!r} cannot be written: {error.strerror}") from error
    check_token(path)
    return path


def check_token(path: Path) -> None:
    """Refuse a token that is missing or that others can read."""
    if not path.is_file():
        raise UsageError(f"the token file {str(path)!r} does not exist; copy it from the head, with mode 0600")
    if path.stat().st_mode & 0o077:
        raise UsageError(f"the token file {str(path)!r} can be read by others; run: chmod 600 {path}")


def authenticate(path: Path) -> None:
    """Let Ray use the token, in this process and in those it starts."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(path)
