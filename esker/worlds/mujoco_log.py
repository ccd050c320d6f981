"""MuJoCo's warnings: each kind once on stderr, XML warnings never, and no MUJOCO_LOG.TXT in the user's folder."""

from __future__ import annotations

import re
import sys

HARMLESS = ("is deprecated and will be removed",)  # of the XML files that Gymnasium brings
_heard: set[str] = set()
_installed = False


def hear_mujoco() -> None:
    """Take MuJoCo's warnings in this process. Imports MuJoCo; without it nothing happens."""
    global _installed
    if _installed:
        return
    try:
        import mujoco
    except ImportError:
        return
    mujoco.set_mju_user_warning(_hear)
    _installed = True


def _hear(text: str) -> None:
    kind = re.sub(r"\d[\d.e+-]*", "N", text)
    if kind in _heard or any(part in text for part in HARMLESS):
        return
    _heard.add(kind)
    print(f"note: MuJoCo: {' '.join(text.split())} (reported once)", file=sys.stderr)
