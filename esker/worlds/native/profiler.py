"""MuJoCo's profiler, which its Python package turns on: without it the same steps take up to a fifth less time."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import mujoco


def profiler_clock() -> ctypes.c_void_p:
    """`mjcb_time` of the loaded library: the clock that stages of a step are timed with. Unset, no stage is timed.

    Nothing but `MjData.timer` depends on it. Where the library is not found, setting the result has no effect.
    """
    for library in sorted(Path(mujoco.__file__).parent.glob("libmujoco*")):
        try:
            loaded = ctypes.CDLL(str(library), mode=getattr(os, "RTLD_NOLOAD", 0) | getattr(os, "RTLD_NOW", 0))
            return ctypes.c_void_p.in_dll(loaded, "mjcb_time")
        except (OSError, ValueError):
            continue
    return ctypes.c_void_p()
