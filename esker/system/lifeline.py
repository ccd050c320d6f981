"""Workers that end with their parent, even while they are stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence

VARIABLE = "ESKER_ENDS_WITH_PARENT"
PR_SET_PDEATHSIG = 1


def inherited(path: Sequence[str]) -> dict[str, str]:
    """Variables of a worker's environment: this process's import path, and whether `hold_lifeline` may hold.

    The kernel watches the starting thread, not its process, and only the main thread lives as long as the process does.
    """
    main = threading.current_thread() is threading.main_thread()
    return {"PYTHONPATH": os.pathsep.join(part or os.getcwd() for part in path), VARIABLE: "1" if main else ""}


def hold_lifeline() -> None:
    """Let the kernel kill this process when its parent dies: a stopped one cannot see the end of a pipe. Linux only."""
    if sys.platform == "linux" and os.environ.get(VARIABLE):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
