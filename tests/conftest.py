"""Shared by all tests: the folder of test environments is importable here and in worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "fuzz")]
# A shell starts background jobs with SIGINT ignored, which children inherit: tests that press Ctrl-C would press in vain.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Runs made by tests are remembered in a folder of their own, which ends with the tests.
STATE_HOME = tempfile.TemporaryDirectory(prefix="esker-state-")
os.environ["XDG_STATE_HOME"] = STATE_HOME.name


@pytest.fixture
def cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line as a user would, in an empty folder; returns status, output and errors."""

    def run(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"}
        return subprocess.run(
            [sys.executable, "-m", "esker", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
            timeout=120,
            **options,  # type: ignore[call-overload]
        )

    return run
