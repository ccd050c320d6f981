"""`esker upload`."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from esker.commands.base import Commands, command, console, run_path
from esker.config.flags import Parser
from esker.errors import RunError, UsageError

DESCRIPTION = """\
Attach videos (.mp4, .gif), pages (.html) and other files to a run's W&B run. Without files: the run's videos, and its
report.html. A run that was not logged to W&B gets a W&B run, with its whole history. Example:

  esker render RUN && esker report RUN -o RUN/report.html && esker upload RUN"""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "upload", run, "attach videos, the report and other files to the W&B run", DESCRIPTION)
    parser.add_argument("run", metavar="RUN_DIR", help="a run folder, or latest")
    parser.add_argument("files", nargs="*", metavar="FILE", help="what to attach (default: the run's videos and report)")
    parser.add_argument("--wandb-mode", choices=("online", "offline"), help="send, or keep for `wandb sync`")


def run(namespace: Namespace) -> int:
    """Run the command."""
    from esker.logs.backend import BackendError
    from esker.logs.wandb import attach
    from esker.runs.loading import Run

    run = Run(run_path(namespace.run))
    files = [Path(name) for name in namespace.files] or _made(run.path)
    if not files:
        raise UsageError(f"{str(run.path)!r} holds no videos and no report to attach; name files, or make them first")
    for file in files:
        if not file.is_file():
            raise UsageError(f"{str(file)!r} is not a file; expected videos, pages or other files to attach")
    try:
        notice = attach(run.config, run.folder, files, namespace.wandb_mode)
    except BackendError as error:
        raise RunError(f"nothing was attached: {error}") from error
    console().print(f"{len(files)} files attached. {notice}", highlight=False, soft_wrap=True)
    return 0


def _made(run: Path) -> list[Path]:
    """What `esker render` and `esker report` left in a run folder."""
    videos = sorted(path for path in (run / "videos").glob("*") if path.suffix in (".mp4", ".gif"))
    return videos + [path for path in [run / "report.html"] if path.is_file()]
