"""Where evidence was made: commit, processor, versions."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def commit() -> str:
    """The commit that was measured, marked when the code had changes."""
    found = _git("describe", "--always", "--abbrev=12", "--exclude=*")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "esker", "benchmarks", ":!benchmarks/results")
    return (found or "unknown") + "-dirty" * bool(changed)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def machine() -> dict[str, Any]:
    """The processor, its cores, and the versions that results depend on."""
    found = {}
    for name in ("esker", "numpy", "torch", "gymnasium", "mujoco", "ale-py"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"cpu": cpu(), "cores": os.cpu_count(), "python": platform.python_version(), "packages": found}


def cpu() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.+)", info.read_text()) if info.exists() else []
    return names[0] if names else platform.processor()
