"""Recording a policy: the same episodes as `esker eval`, as videos or in a window."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from esker.errors import RunError, UsageError, named_line
from esker.logs.video import Frame, VideoWriter, caption, write_gif
from esker.noise.address import Purpose, episode_seed
from esker.runs import checkpoints
from esker.runs.files import refuse_links_in
from esker.runs.folder import RunFolder, is_checkpoint
from esker.runs.loading import LoadedCheckpoint, environment_of, open_checkpoint, policy_of
from esker.runs.trust import Trust
from esker.worlds.display import prepare_offscreen, require_display
from esker.worlds.environments import Env, Environment, close_quietly, silence
from esker.worlds.instances import Copies

DEFAULT_FPS = 30.0
MOST_PIXELS = 8_192
MOST = {"episodes": 10_000, "max_steps": 10**9, "fps": 1_000}
BREAK_SECONDS = 0.5  # between two episodes of one video


@dataclass(frozen=True)
class Options:
    """How to record."""

    episodes: int = 1
    max_steps: int | None = None
    seed: int = 0
    size: tuple[int, int | None] | None = None
    fps: float | None = None
    gif: bool = False
    caption: bool = False

    def check(self) -> None:
        """Refuse what cannot be recorded. Raises UsageError."""
        for name in ("episodes", "max_steps", "fps"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST[name]:
                limit = f"at most {MOST[name]:,}" if value > 1 else "at least 1"
                raise UsageError(f"{name} is {value}; expected {limit}")
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}; expected at least 0")
        if self.size is not None and not all(16 <= (side or 16) <= MOST_PIXELS for side in self.size):
            limit = "at least 16" if min(side or 16 for side in self.size) < 16 else f"at most {MOST_PIXELS:,}"
            raise UsageError(f"size is {self.size[0]}x{self.size[1] or '?'}; expected {limit} pixels a side")


@dataclass(frozen=True)
class Recording:
    """What was recorded of one checkpoint."""

    checkpoint: int
    returns: list[float]
    lengths: list[int]
    frames: int
    files: list[Path]
    notices: list[str]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.returns)


@dataclass
class Episode:
    """A running episode and its return so far."""

    number: int
    total: float = 0.0
    length: int = 0


def checkpoints_of(path: Path, wanted: str) -> list[str]:
    """The checkpoints that a request names: "all" is every snapshot that was kept."""
    if wanted != "all" or is_checkpoint(path):
        return ["best" if wanted == "all" else wanted]
    found = checkpoints.generations(RunFolder.open(path).checkpoints)
    if not found:
        raise UsageError(f"run {str(path)!r} has no checkpoint yet; continue it with: esker resume {path}")
    return [str(generation) for generation in found]


def render(
    path: Path,
    checkpoint: str,
    options: Options,
    output: Path | None = None,
    trust: Trust = False,
    made_by: Callable[..., Env] | None = None,
) -> Recording:
    """Record a checkpoint as RUN/videos/checkpoint-N-return-R.mp4, or as the file or folder that `output` names.

    `made_by` makes the environment where the run was trained on a Python object.
    """
    options.check()
    trained = open_checkpoint(path, checkpoint, trust, unused=frozenset() if made_by is None else frozenset({"env"}))
    prepare_offscreen(trained.config.env)
    with silence():
        env = open_environment(trained, "rgb_array", options.size, made_by)
    folder, name = _target(path, output)
    refuse_links_in(folder)
    folder.mkdir(parents=True, exist_ok=True)
    fps = options.fps or float(env.metadata.get("render_fps") or DEFAULT_FPS)
    building = folder / f".recording-{trained.snapshot.generation}.mp4"
    episodes: list[Episode] = []
    try:
        with VideoWriter(building, fps, options.size) as video:
            for episode in range(options.episodes):
                if episode and trained.config.fresh_environments:  # where reset alone would not repeat eval's episode
                    close_quietly(env)
                    with silence():
                        env = open_environment(trained, "rgb_array", options.size, made_by)
                if episode:
                    video.pause(round(BREAK_SECONDS * fps))
                episodes.append(Episode(episode))
                for frame in play(env, trained, episodes[-1], options):
                    video.add(_with_caption(frame, trained, episodes[-1]) if options.caption else frame)
        returns, lengths = [e.total for e in episodes], [e.length for e in episodes]
        stem = f"checkpoint-{trained.snapshot.generation:06d}-return-{statistics.fmean(returns):.1f}"
        files = _finish(building, folder / (name or f"{stem}.mp4"), fps, options.gif)
    finally:
        building.unlink(missing_ok=True)
        close_quietly(env)
    return Recording(trained.snapshot.generation, returns, lengths, video.frames, files, trained.notices)


def watch(path: Path, checkpoint: str, options: Options, trust: Trust = False) -> Recording:
    """Show a checkpoint in a window, at the environment's own pace."""
    options.check()
    require_display()
    trained = open_checkpoint(path, checkpoint, trust, unused=frozenset())
    with silence():
        env = open_environment(trained, "human")
    episodes = [Episode(number) for number in range(options.episodes)]
    frames = 0
    try:
        for episode in episodes:
            frames += sum(1 for _ in play(env, trained, episode, options, draw=False))
    finally:
        close_quietly(env)
    returns, lengths = [e.total for e in episodes], [e.length for e in episodes]
    return Recording(trained.snapshot.generation, returns, lengths, frames, [], trained.notices)


def open_environment(
    trained: LoadedCheckpoint,
    mode: str,
    size: tuple[int, int | None] | None = None,
    made_by: Callable[..., Env] | None = None,
) -> Env:
    """The run's environment in a render mode. One that cannot render raises UsageError."""
    environment = environment_of(trained.config, made_by)
    view = camera(environment, size) if mode == "rgb_array" else {}
    try:
        env = environment.make(render_mode=mode, **view)
    except UsageError as error:
        if "render_mode" not in str(error):
            raise
        why = "it was given as an instance" if isinstance(made_by, Copies) else f"it does not take render_mode={mode!r}"
        raise UsageError(f"environment {environment.name!r} cannot render: {why}") from error
    modes = env.metadata.get("render_modes") or []
    if env.render_mode != mode or (mode not in modes and "rgb_array" not in modes):
        close_quietly(env)
        able = ", ".join(modes) or "none"
        raise UsageError(f"environment {environment.name!r} cannot render as {mode}; its render modes: {able}")
    return env


def camera(environment: Environment, size: tuple[int, int | None] | None) -> dict[str, Any]:
    """How Gymnasium's MuJoCo environments are to be drawn: at the given size, by the camera that follows the body.

    Gymnasium's own choice is a camera that stays behind, which a runner leaves within a second.
    """
    spec = gym.registry.get(environment.name)
    if spec is None or not str(spec.entry_point).startswith("gymnasium.envs.mujoco"):
        return {}
    given = environment.kwargs
    view: dict[str, Any] = (
        {} if {"camera_id", "camera_name", "default_camera_config"} & set(given) else {"camera_name": "track"}
    )
    if size is not None and not {"width", "height"} & set(given):
        view |= {"width": size[0], "height": size[1] or size[0]}
    return view


def play(env: Env, trained: LoadedCheckpoint, episode: Episode, options: Options, *, draw: bool = True) -> Iterator[Frame]:
    """Play one episode, a frame before the first step and one after each."""
    policy = policy_of(trained)
    policy.observation_space = env.observation_space  # the environment flattens observations already
    observation, _ = env.reset(seed=episode_seed(options.seed, Purpose.EVALUATION, 0, episode.number))
    yield _picture(env) if draw else np.empty(0, dtype=np.uint8)
    done = False
    while not done and episode.length != options.max_steps:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
        episode.total += float(reward)
        episode.length += 1
        done = terminated or truncated
        yield _picture(env) if draw else np.empty(0, dtype=np.uint8)


def _picture(env: Env) -> Frame:
    try:
        frame: Any = env.render()
    except Exception as error:
        raise RunError(f"the environment failed while rendering: {named_line(error)}") from error
    if not isinstance(frame, np.ndarray) or frame.ndim != 3 or frame.shape[2] != 3:
        what = f"an array of shape {frame.shape}" if isinstance(frame, np.ndarray) else type(frame).__name__
        raise UsageError(f"the environment rendered {what}; expected an RGB image (height, width, 3)")
    return frame.astype(np.uint8, copy=False)


def _with_caption(frame: Frame, trained: LoadedCheckpoint, episode: Episode) -> Frame:
    return caption(frame, f"checkpoint {trained.snapshot.generation}   step {episode.length}   return {episode.total:.1f}")


def _target(path: Path, output: Path | None) -> tuple[Path, str | None]:
    """The folder to write into, and the file's name where it was chosen."""
    if output is None:
        return (Path("videos") if is_checkpoint(path) else path / "videos"), None
    if output.is_dir() or not output.suffix:
        return output, None
    if output.suffix not in (".mp4", ".gif"):
        raise UsageError(f"output is {str(output)!r}; expected a file .mp4 or .gif, or a folder")
    return output.parent, output.name


def _finish(building: Path, target: Path, fps: float, gif: bool) -> list[Path]:
    """Give the video its name, with a GIF next to it, or instead of it if the name ends in .gif."""
    files = []
    if gif or target.suffix == ".gif":
        files.append(target.with_suffix(".gif"))
        write_gif(building, files[0], fps)
    if target.suffix == ".mp4":
        files.insert(0, building.replace(target))
    return files
