"""`esker render`: videos that decode, the episodes that eval counts, windows, and clear refusals."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import av
import gymnasium as gym
import numpy as np
import pytest
from PIL import Image
from small_runs import small_run

import esker
from esker.cli import main
from esker.logs.video import caption, even_size, scale
from esker.worlds import display


def decoded(path: Path) -> tuple[str, str, int, tuple[int, int], float]:
    """Codec, pixel format, number of decoded frames, size and frames per second of a video."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.average_rate is not None
        codec, pixels, rate = stream.codec_context.name, stream.codec_context.pix_fmt, float(stream.average_rate)
        count = sum(1 for _ in container.decode(video=0))
        return codec, str(pixels), count, (stream.width, stream.height), rate


def render(*arguments: Any) -> int:
    return main(["render", *map(str, arguments)])


def test_video_is_h264_with_a_frame_for_the_start_and_each_step(tmp_path: Path) -> None:
    assert render(small_run(), "--max-steps", 7, "--episodes", 2, "--fps", 25, "-o", tmp_path / "v.mp4") == 0
    between = 12  # half a second, so that two episodes are seen as two
    assert decoded(tmp_path / "v.mp4") == ("h264", "yuv420p", 2 * (1 + 7) + between, (600, 400), 25.0)


def test_video_plays_while_it_loads(tmp_path: Path) -> None:
    render(small_run(), "--max-steps", 3, "-o", tmp_path / "v.mp4")
    data = (tmp_path / "v.mp4").read_bytes()
    assert 0 < data.index(b"moov") < data.index(b"mdat")


def test_rendered_episode_is_the_one_that_eval_counts() -> None:
    from esker.tools.render import Options
    from esker.tools.render import render as record

    recording = record(small_run(), "latest", Options(episodes=3, seed=5))
    evaluation, _ = esker.evaluate(small_run(), checkpoint="latest", episodes=3, seed=5, workers=0)
    assert recording.returns == evaluation.returns
    assert recording.frames == sum(evaluation.lengths) + 3
    assert [file.name for file in recording.files] == [f"checkpoint-000004-return-{recording.mean:.1f}.mp4"]


def test_all_renders_every_snapshot_that_was_kept(tmp_path: Path) -> None:
    assert render(small_run(), "--checkpoint", "all", "--max-steps", 2, "-o", tmp_path) == 0
    kept = sorted(path.name for path in (small_run() / "checkpoints").iterdir())
    assert sorted(file.name.split("-")[1] for file in tmp_path.glob("*.mp4")) == kept


def test_gif_keeps_the_pace_and_loops(tmp_path: Path) -> None:
    render(small_run(), "--max-steps", 9, "--fps", 50, "--size", "120x80", "--gif", "-o", tmp_path / "v.mp4")
    with Image.open(tmp_path / "v.gif") as picture:
        frames, duration = getattr(picture, "n_frames", 1), 0
        for number in range(frames):
            picture.seek(number)
            duration += picture.info["duration"]
        assert (picture.size, picture.info["loop"], duration) == ((120, 80), 0, 200)
    assert decoded(tmp_path / "v.mp4")[2] == 10


def test_gif_alone_when_the_name_says_so(tmp_path: Path) -> None:
    render(small_run(), "--max-steps", 2, "-o", tmp_path / "v.gif")
    assert [file.name for file in tmp_path.iterdir()] == ["v.gif"]


def test_odd_sizes_become_even() -> None:
    assert even_size(601, 401, None) == (600, 400)
    assert even_size(600, 400, (151, None)) == (150, 100)
    frame = np.arange(5 * 5 * 3, dtype=np.uint8).reshape(5, 5, 3)
    np.testing.assert_array_equal(scale(frame, (4, 4)), frame[:4, :4])


def test_caption_writes_only_into_the_upper_left() -> None:
    frame = np.full((220, 600, 3), 200, dtype=np.uint8)
    written = caption(frame, "return 12.0")
    changed = np.argwhere((written != frame).any(axis=2))
    assert len(changed) > 200
    assert changed.max(axis=0)[0] < 40
    assert changed.max(axis=0)[1] < 200


def test_eval_and_render_take_a_bare_checkpoint_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "moved"
    shutil.copytree(small_run() / "checkpoints" / "000002", bare)
    assert main(["eval", str(bare), "--episodes", "5", "--workers", "0", "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main(["eval", str(small_run()), "--checkpoint", "2", "--episodes", "5", "--workers", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == alone
    assert render(bare, "--max-steps", 3, "-o", tmp_path / "v.mp4") == 0
    assert decoded(tmp_path / "v.mp4")[2] == 4


def test_bare_checkpoint_of_an_older_run_uses_the_run_around_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(small_run(), run)
    for name in ("config.toml", "about.json"):
        (run / "checkpoints" / "000002" / name).unlink()
    assert esker.load(run / "checkpoints" / "000002").network.inputs == 4


class Blind(gym.Env[Any, Any]):
    """An environment that cannot render."""

    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.at = 0
        return np.zeros(2, dtype=np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.at += 1
        return np.zeros(2, dtype=np.float32), float(action) + self.at % 2, self.at == 3, False, {}


class Unready(Blind):
    """One that takes a render mode and has none."""

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode


REFUSED = [
    (["--checkpoint", "99"], "generation 99 does not exist; this run has 0 to 4 (snapshots: 0"),
    (["--checkpoint", "bset"], "checkpoint is 'bset'; expected best, latest or a generation"),
    (["--size", "wide"], "size is 'wide'; expected a width such as 320"),
    (["--size", "8"], "size is 8x?; expected at least 16 pixels"),
    (["--episodes", "0"], "episodes is 0; expected at least 1"),
    (["--fps", "0"], "fps is 0.0; expected at least 1"),
    (["-o", "v.avi"], "output is 'v.avi'; expected a file .mp4 or .gif, or a folder"),
    (["--checkpoint", "all", "-o", "v.mp4"], "output is 'v.mp4', and there are"),
    (["--watch", "--gif"], "--watch shows a window and writes nothing, so --gif has no effect"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=lambda value: " ".join(value) if value else "")
def test_wrong_request_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(small_run(), *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_folder_that_is_no_run_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path) == 2
    assert "is not a run folder (it has no config.toml)" in capsys.readouterr().err


def test_run_without_checkpoints_says_how_to_continue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_text((small_run() / "config.toml").read_text())
    (tmp_path / "about.json").write_text((small_run() / "about.json").read_text())
    assert render(tmp_path) == 2
    assert "has no checkpoint yet; continue it with: esker resume" in capsys.readouterr().err


def test_damaged_bare_checkpoint_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = tmp_path / "moved"
    shutil.copytree(small_run() / "checkpoints" / "000002", bare)
    data = bytearray((bare / "state.safetensors").read_bytes())
    data[-1] ^= 1
    (bare / "state.safetensors").write_bytes(data)
    assert main(["eval", str(bare)]) == 2
    assert "the checksum does not match" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [Blind, Unready])
def test_environment_that_cannot_render_is_refused(kind: type[Blind], capsys: pytest.CaptureFixture[str]) -> None:
    run = small_run(f"{__name__}:{kind.__name__}", generations=1)
    assert render(run) == 2
    assert "cannot render" in capsys.readouterr().err


def test_watch_without_a_display_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert render(small_run(), "--watch") == 2
    assert "--watch needs a display" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="Xvfb is not installed")
def test_watch_opens_a_window_that_shows_the_cart(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", "800x600x24", "-fbdir", str(tmp_path), "-nolisten", "tcp"],
        pass_fds=[writer],
        stderr=subprocess.DEVNULL,
    )
    try:
        os.close(writer)
        number = os.read(reader, 16).decode().strip()
        environment = {k: v for k, v in os.environ.items() if k != "SDL_VIDEODRIVER"} | {"DISPLAY": f":{number}"}
        command = [
            sys.executable,
            "-m",
            "esker.cli",
            "render",
            str(small_run()),
            "--watch",
            "--episodes",
            "2",
            "--max-steps",
            "30",
        ]
        watching = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        white = 0
        while watching.poll() is None and not white:
            screen = (tmp_path / "Xvfb_screen0").read_bytes()
            white = screen.count(b"\xff\xff\xff\x00" * 300) + screen.count(b"\xff\xff\xff\xff" * 300)  # its background
            time.sleep(0.05)
        output, _ = watching.communicate(timeout=60)
        assert watching.returncode == 0
        assert "over 2 episodes" in output
        assert white > 0
    finally:
        server.terminate()
        server.wait()
        os.close(reader)


def test_mujoco_draws_without_a_display(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    run = small_run("InvertedPendulum-v5", generations=1)
    command = [sys.executable, "-m", "esker.cli", "render", str(run), "--max-steps", "3", "-o", str(tmp_path / "v.mp4")]
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with av.open(str(tmp_path / "v.mp4")) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(pictures) == 4
    assert pictures[0].std() > 10  # something is in the picture


def test_mujoco_runner_is_followed_and_drawn_at_the_size_asked_for() -> None:
    pytest.importorskip("mujoco")
    from esker.runs.loading import open_checkpoint
    from esker.tools.render import open_environment

    trained = open_checkpoint(small_run("HalfCheetah-v5", generations=1, max_episode_steps=5))
    env = open_environment(trained, "rgb_array", (96, None))
    inner: Any = env.unwrapped
    assert inner.model.cam(inner.mujoco_renderer.camera_id).name == "track"
    assert (inner.width, inner.height) == (96, 96)
    env.close()


def test_mujoco_that_cannot_draw_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco")
    run = small_run("InvertedPendulum-v5", generations=1)
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(display, "PROBE", "raise SystemExit(1)")
    display.offscreen_backend.cache_clear()
    assert render(run) == 2
    assert "apt install libegl1 libgl1-mesa-dri (EGL), or apt install libosmesa6 (OSMesa)" in capsys.readouterr().err
    display.offscreen_backend.cache_clear()
