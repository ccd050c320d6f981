"""A model card: a folder as model hubs expect it, which esker also loads as a checkpoint."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from esker import __version__
from esker.config.build import default_of, to_toml
from esker.errors import UsageError
from esker.runs import checkpoints
from esker.runs.files import refuse_links_in
from esker.runs.folder import is_checkpoint
from esker.runs.loading import LoadedCheckpoint, evaluate, open_checkpoint
from esker.runs.seals import seal_json, seal_toml
from esker.runs.trust import Trust
from esker.system.words import flag

NOT_SHOWN = {"env", "algo", "run_dir", "quiet", "seed"}


@dataclass(frozen=True)
class Card:
    """Where the card is, what it claims, and what had to be left out."""

    folder: Path
    results: dict[str, Any]
    notices: list[str]


def write_card(
    path: Path,
    checkpoint: str,
    episodes: int,
    output: Path | None = None,
    workers: int | None = None,
    trust: Trust = False,
) -> Card:
    """Evaluate a checkpoint, record it, and put everything that others need into one folder."""
    trained = open_checkpoint(path, checkpoint, trust, unused=frozenset())
    folder = output or (Path("card") if is_checkpoint(path) else path / "card")
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / "README.md").is_file()):
        raise UsageError(f"output is {str(folder)!r}, which holds other files; choose another -o")
    refuse_links_in(folder)
    evaluation, _ = evaluate(path, checkpoint=checkpoint, episodes=episodes, workers=workers, trust=trust)
    folder.mkdir(parents=True, exist_ok=True)
    results = results_of(evaluation.summary())
    notices = [*trained.notices, *_replay(path, checkpoint, folder, trust), *_curve(path, folder)]
    write_weights(trained, folder)
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "README.md").write_text(readme(trained, results, folder), encoding="utf-8")
    return Card(folder, results, notices)


def results_of(summary: dict[str, Any]) -> dict[str, Any]:
    """The names under which hubs look for results, and esker's own."""
    return {
        "mean_reward": summary["mean"],
        "std_reward": summary["std"],
        "n_eval_episodes": summary["episodes"],
        "is_deterministic": True,
        "eval_datetime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **{name: summary[name] for name in ("min", "max", "median", "length_mean", "checkpoint")},
        "seed": 0,
    }


def write_weights(trained: LoadedCheckpoint, folder: Path) -> None:
    """What acting needs, and no optimizer; as a checkpoint folder has it."""
    arrays = {name: array for name, array in trained.snapshot.arrays.items() if not name.startswith("optimizer.")}
    with tempfile.TemporaryDirectory(dir=folder) as building:
        written = checkpoints.write(Path(building), replace(trained.snapshot, arrays=arrays), run=trained.about.get("run"))
        for file in written.iterdir():
            file.replace(folder / file.name)
    (folder / "config.toml").write_text(seal_toml(to_toml(trained.config)))
    (folder / "about.json").write_text(seal_json(trained.about))


def _replay(path: Path, checkpoint: str, folder: Path, trust: Trust) -> list[str]:
    from esker.tools.render import Options, render

    try:
        render(path, checkpoint, Options(), folder / "replay.mp4", trust)
    except UsageError as error:  # a policy can be shared without a video
        return [f"no replay.mp4: {error}"]
    return []


def _curve(path: Path, folder: Path) -> list[str]:
    from esker.logs.plot import draw
    from esker.runs.groups import group_runs
    from esker.runs.reading import read_run

    if is_checkpoint(path):
        return []
    try:
        draw(group_runs([read_run(path)]), folder / "curve.png")
    except UsageError as error:
        return [f"no curve.png: {error}"]
    return []


def readme(trained: LoadedCheckpoint, results: dict[str, Any], folder: Path) -> str:
    """The card's text: metadata for the hub, results, how to use it, how it was made."""
    config = trained.config
    parts = {
        "env": config.env,
        "env_quoted": json.dumps(config.env),
        "algo": config.algo,
        "mean": f"{results['mean_reward']:.2f}",
        "std": f"{results['std_reward']:.2f}",
        "episodes": str(results["n_eval_episodes"]),
        "minimum": f"{results['min']:.2f}",
        "maximum": f"{results['max']:.2f}",
        "checkpoint": str(results["checkpoint"]),
        "steps": f"{trained.snapshot.values.get('env_steps', 0):,}",
        "command": command(config),
        "versions": " · ".join(f"{name} {version}" for name, version in trained.about.get("versions", {}).items()),
        "curve": "![learning curve](curve.png)\n" if (folder / "curve.png").is_file() else "",
        "replay": "`replay.mp4` shows one episode.\n\n" if (folder / "replay.mp4").is_file() else "",
        "esker": __version__,
    }
    text = (files("esker.tools") / "card.md").read_text(encoding="utf-8")
    for name, value in parts.items():
        text = text.replace("{{" + name + "}}", value)
    return text


def command(config: Any) -> str:
    """The command that repeats the training: every option that is not its default."""
    words = [f"esker train {config.env} --algo {config.algo} --preset none --seed {config.seed}"]
    for option in fields(config):
        value = getattr(config, option.name)
        if option.name in NOT_SHOWN or value == default_of(option):
            continue
        words.append(_flag(option.name, value))
    return " \\\n  ".join(words)


def _flag(name: str, value: Any) -> str:
    if name == "wrapper":
        return " ".join(flag(name, part) for part in value)
    return flag(name, json.dumps(value) if isinstance(value, dict) else value)
