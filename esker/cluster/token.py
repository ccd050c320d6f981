"""The token that nodes and drivers of a Ray cluster show each other: a file that only its owner can read."""

from __future__ import annotations

import os
from pathlib import Path

from esker.errors import UsageError
from esker.system.tokens import check_private, config_folder, make_token


def token_file() -> Path:
    """Where the token is: $RAY_AUTH_TOKEN_PATH, or esker's file in the user's configuration folder."""
    given = os.environ.get("RAY_AUTH_TOKEN_PATH")
    return Path(given) if given else config_folder() / "ray-token"


def ensure_token() -> Path:
    """The token's file, created if there is none. One that others can read raises UsageError."""
    path = token_file()
    make_token(path)
    check_token(path)
    return path


def check_token(path: Path) -> None:
    """Refuse a token that is missing or that others can read. Raises UsageError."""
    if not path.is_file():
        raise UsageError(f"the token file {str(path)!r} does not exist; copy it from the head, with mode 0600")
    check_private(path)


def authenticate(path: Path) -> None:
    """Let Ray use the token, in this process and in those it starts."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(path)
