"""`esker render`."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from esker.commands.base import Commands, add_trust, command, console, run_path
from esker.config.flags import Parser
from esker.errors import UsageError

if TYPE_CHECKING:
    from esker.tools.render import Recording

HELP = """\
Record a run's policy as a video (mp4, H.264), or show it in a window. Examples:

  esker render runs/CartPole-v1/es-s0
  esker render RUN --checkpoint all --caption --gif
  esker render RUN/checkpoints/000020 --episodes 3 -o three.mp4
  esker render RUN --watch
  esker render humanoid/ars                            # a trained policy that comes with esker

Episodes are those of `esker eval` with the same seed. Videos go to RUN/videos, named by checkpoint and mean return."""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "render", run, "record a run's policy as a video, or watch it", HELP)
    parser.add_argument("run", metavar="RUN_DIR", help="a run or checkpoint folder, a preset with a policy, or latest")
    parser.add_argument("--checkpoint", default="best", metavar="best|latest|all|N", help="which policy (default: best)")
    parser.add_argument("--episodes", type=int, default=1, metavar="N", help="episodes, one after another (default: 1)")
    parser.add_argument("--max-steps", type=int, metavar="N", help="end episodes after N steps")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument("--size", metavar="W|WxH", help="size in pixels (default: the environment's)")
    parser.add_argument("--fps", type=float, metavar="X", help="frames per second (default: the environment's)")
    parser.add_argument("--caption", action="store_true", help="burn checkpoint, step and return into the frames")
    parser.add_argument("--gif", action="store_true", help="write a GIF as well")
    parser.add_argument("--watch", action="store_true", help="show it in a window and write nothing")
    parser.add_argument("-o", "--output", metavar="FILE|DIR", help="FILE.mp4, FILE.gif or a folder (default: RUN/videos)")
    add_trust(parser)


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.tools import render

    path = Path(run_path(namespace.run))
    options = render.Options(
        episodes=namespace.episodes,
        max_steps=namespace.max_steps,
        seed=namespace.seed,
        size=_size(namespace.size),
        fps=namespace.fps,
        gif=namespace.gif,
        caption=namespace.caption,
    )
    wanted = render.checkpoints_of(path, namespace.checkpoint)
    output = Path(namespace.output) if namespace.output else None
    if namespace.watch:
        _refuse_files(namespace)
    elif len(wanted) > 1 and output is not None and output.suffix:
        raise UsageError(f"output is {namespace.output!r}, and there are {len(wanted)} checkpoints; give a folder")
    for checkpoint in wanted:
        if namespace.watch:
            _say(render.watch(path, checkpoint, options, namespace.trust))
        else:
            _say(render.render(path, checkpoint, options, output, namespace.trust))
    return 0


def _say(recording: Recording) -> None:
    for notice in recording.notices:
        print(f"note: {notice}", file=sys.stderr)
    steps = sum(recording.lengths)
    episodes = f"{len(recording.returns)} episodes" if len(recording.returns) > 1 else "1 episode"
    text = f"checkpoint {recording.checkpoint}: return {recording.mean:,.1f} over {episodes}, {steps:,} steps"
    console().print(text, highlight=False, soft_wrap=True)
    for file in recording.files:
        console().print(f"  {file} ({file.stat().st_size / 1024:,.0f} KiB)", highlight=False, soft_wrap=True)


def _size(text: str | None) -> tuple[int, int | None] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)(?:x(\d+))?", text)
    if match is None or 0 in (int(match[1]), int(match[2] or 1)):
        raise UsageError(f"size is {text!r}; expected a width such as 320, or width and height such as 320x240")
    return int(match[1]), int(match[2]) if match[2] else None


def _refuse_files(namespace: Namespace) -> None:
    for name in ("output", "gif", "caption", "size", "fps"):
        if getattr(namespace, name):
            flag = "-o" if name == "output" else f"--{name}"
            raise UsageError(f"--watch shows a window and writes nothing, so {flag} has no effect; leave out one of them")
