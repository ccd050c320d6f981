"""`esker doctor`: what this machine has, what is missing and how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any, Literal

EXTRAS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mujoco": ("MuJoCo environments", ("mujoco",)),
    "box2d": ("LunarLander, BipedalWalker, CarRacing", ("Box2D",)),
    "atari": ("Atari games", ("ale_py", "cv2")),
    "envpool": ("fast vectorised environments", ("envpool",)),
    "ray": ("clusters", ("ray",)),
    "wandb": ("--log wandb", ("wandb",)),
    "tensorboard": ("--log tensorboard", ("tensorboard",)),
    "sweep": ("esker sweep", ("optuna",)),
    "plot": ("esker plot", ("matplotlib",)),
    "video": ("esker render", ("av", "PIL")),
    "export": ("esker export to ONNX", ("onnx", "onnxscript", "onnxruntime")),
}
# Where a module's distribution has another name.
DISTRIBUTIONS = {
    "cv2": ("opencv-python-headless", "opencv-python"),
    "ale_py": ("ale-py",),
    "Box2D": ("box2d", "box2d-py"),
    "PIL": ("pillow",),
}
PACKAGES = ("esker", "numpy", "torch", "gymnasium", "safetensors", "rich")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE")
Mark = Literal["ok", "missing", "note"]


@dataclass(frozen=True)
class Finding:
    """One check; the text of a missing package tells how to install it."""

    section: str
    name: str
    mark: Mark
    text: str


def examine() -> list[Finding]:
    """Run all checks; takes a few seconds and changes nothing."""
    return [*_machine(), *_packages(), *_extras(), *_pictures(), *_numbers()]


def as_json(findings: list[Finding]) -> dict[str, Any]:
    """By section and name."""
    result: dict[str, Any] = {}
    for finding in findings:
        values = asdict(finding)
        result.setdefault(values.pop("section"), {})[values.pop("name")] = values
    return result


def _machine() -> list[Finding]:
    from esker.system.cores import available_cores

    cores, total = available_cores(), os.cpu_count()
    threads = {name: os.environ[name] for name in THREADS if name in os.environ}
    set_by = ", ".join(f"{name}={value}" for name, value in threads.items()) or "none set; workers use one thread each"
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    return [
        Finding("machine", "system", "ok", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        Finding("machine", "python", "ok", f"{platform.python_version()} at {sys.executable}"),
        Finding("machine", "cores", "ok", f"{cores} usable of {total}: as many workers by default"),
        Finding("machine", "memory", "ok", _memory()),
        Finding("machine", "thread variables", "ok", set_by),
        Finding("machine", "disk", "ok" if free > 1 else "note", f"{free:,.1f} GiB free here, where runs/ goes"),
        _accelerator(),
    ]


def _memory() -> str:
    if not hasattr(os, "sysconf"):
        return "unknown"
    page = os.sysconf("SC_PAGE_SIZE")
    total, free = (os.sysconf(name) * page / 2**30 for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    return f"{free:.1f} of {total:.1f} GiB free"


def _accelerator() -> Finding:
    import torch

    threads = f"torch uses {torch.get_num_threads()} threads in the main process"
    if torch.cuda.is_available():
        return Finding("machine", "GPU", "ok", f"{torch.cuda.get_device_name()}; {threads}")
    return Finding("machine", "GPU", "note", f"none that torch sees (not needed); {threads}")


def _packages() -> list[Finding]:
    return [Finding("packages", name, "ok", _version(name) or "unknown") for name in PACKAGES]


def _version(package: str) -> str | None:
    from esker import __version__

    if package == "esker":
        return __version__
    for name in (*DISTRIBUTIONS.get(package, ()), package):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _extras() -> list[Finding]:
    findings = []
    for extra, (use, modules) in EXTRAS.items():
        absent = [module for module in modules if util.find_spec(module) is None]
        if absent:
            text = f"for {use}: pip install 'esker[{extra}]'"
            findings.append(Finding("extras", extra, "missing", text))
        else:
            versions = ", ".join(f"{module} {_version(module) or ''}".strip() for module in modules)
            findings.append(Finding("extras", extra, "ok", f"{versions} ({use})"))
    return findings


def _pictures() -> list[Finding]:
    return [_offscreen(), _display(os.environ), _ffmpeg()]


def _offscreen() -> Finding:
    from esker.worlds.display import INSTALL, offscreen_backend

    name = "MuJoCo offscreen"
    if util.find_spec("mujoco") is None:
        return Finding("pictures", name, "note", "not tried: MuJoCo is not installed")
    backend = offscreen_backend()
    if backend is None:
        return Finding("pictures", name, "missing", f"neither EGL nor OSMesa can render; {INSTALL}")
    return Finding("pictures", name, "ok", f"draws with {backend.upper() if backend == 'egl' else 'OSMesa'}")


def _display(environment: Mapping[str, str]) -> Finding:
    shown = environment.get("WAYLAND_DISPLAY") or environment.get("DISPLAY")
    if shown:
        return Finding("pictures", "display", "ok", f"{shown}: esker render --watch opens a window")
    return Finding("pictures", "display", "note", "none: videos can be written, windows (--watch) not opened")


def _ffmpeg() -> Finding:
    """PyAV brings FFmpeg's libraries with it; the program itself is not needed."""
    if util.find_spec("av") is None:
        return Finding("pictures", "ffmpeg", "missing", "for videos: pip install 'esker[video]'")
    import av

    version = ".".join(str(part) for part in av.library_versions["libavcodec"])
    if "libx264" in av.codecs_available:
        return Finding("pictures", "ffmpeg", "ok", f"PyAV {av.__version__} with libavcodec {version} writes H.264")
    return Finding("pictures", "ffmpeg", "missing", "this PyAV cannot write H.264; pip install --force-reinstall av")


def _numbers() -> list[Finding]:
    import gymnasium as gym

    from esker.noise.fingerprint import fingerprint
    from esker.worlds.environments import silence

    with silence():
        env = gym.make("CartPole-v1")
        print_of = fingerprint(env)
        env.close()
    text = f"{print_of} (CartPole-v1): machines with the same fingerprint compute the same bits"
    return [Finding("numbers", "fingerprint", "ok", text), Finding("numbers", "BLAS", "ok", _blas())]


def _blas() -> str:
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
