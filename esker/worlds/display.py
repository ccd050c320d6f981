"""Rendering: a display for windows, and a back-end for MuJoCo to render without one."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import gymnasium as gym

from esker.errors import UsageError

INSTALL = "apt install libegl1 libgl1-mesa-dri (EGL), or apt install libosmesa6 (OSMesa)"
# Probed in a separate process: a back-end that failed once leaves PyOpenGL bound to it.
PROBE = """\
import mujoco
context = mujoco.GLContext(64, 64)
context.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), mujoco.mjtFontScale.mjFONTSCALE_150)
"""


def require_display() -> None:
    """Refuse to open a window without a display. Raises UsageError."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise UsageError("--watch needs a display, and DISPLAY is not set; leave out --watch to write a video instead")


def prepare_offscreen(name: str) -> None:
    """Let an environment draw without a display: MuJoCo by EGL, else OSMesa. Where neither works raises UsageError."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # pygame draws into memory, without a window system
    if not may_use_mujoco(name) or os.environ.get("MUJOCO_GL"):
        return
    backend = offscreen_backend()
    if backend is None:
        raise UsageError(f"MuJoCo can draw neither with EGL nor with OSMesa on this machine; {INSTALL}")
    os.environ["MUJOCO_GL"] = backend


def may_use_mujoco(name: str) -> bool:
    """Whether an environment may draw with MuJoCo; a custom one might, if MuJoCo is installed."""
    spec = gym.registry.get(name)
    if spec is not None:
        return "mujoco" in str(spec.entry_point)
    from importlib.util import find_spec

    return find_spec("mujoco") is not None


@cache
def offscreen_backend() -> str | None:
    """The first of EGL and OSMesa that draws on this machine."""
    for backend in ("egl", "osmesa"):
        environment = os.environ | {"MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend}
        done = subprocess.run([sys.executable, "-P", "-c", PROBE], env=environment, capture_output=True, check=False)
        if done.returncode == 0:
            return backend
    return None
