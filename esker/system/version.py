"""The version that runs, with its commit where that is known."""

from __future__ import annotations

import subprocess
from pathlib import Path

from esker import __version__

PACKAGE = Path(__file__).parent.parent


def version_text() -> str:
    """As `0.1.0 (commit 1a2b3c4)`; without the commit where neither the package nor a checkout knows it."""
    commit = _built() or _checked_out()
    return f"{__version__} (commit {commit})" if commit else __version__


def _built() -> str | None:
    """The commit that a wheel was built from."""
    file = PACKAGE / "COMMIT"
    return file.read_text().strip() if file.is_file() else None


def _checked_out() -> str | None:
    """The commit of the checkout that holds the package, marked if tracked files were changed."""
    if not (PACKAGE.parent / ".git").exists():
        return None
    command = ["git", "-C", str(PACKAGE.parent), "describe", "--always", "--dirty=, changed", "--abbrev=7", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):
        return None
