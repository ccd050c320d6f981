"""`esker card`: a folder whose claims can be repeated from the folder itself."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from small_runs import QUICK, small_run
from support import first_of_evaluation

import esker
from esker.cli import main
from esker.config.flags import Parser, add_options
from esker.config.options import ESConfig
from esker.runs.groups import INCIDENTAL
from esker.runs.loading import open_checkpoint
from esker.runs.request import configure
from esker.tools.card import command


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("cards") / "model"
    assert main(["card", str(small_run()), "--episodes", "7", "--workers", "0", "-o", str(target)]) == 0
    return target


def test_folder_has_everything_a_hub_expects(card: Path) -> None:
    names = {file.name for file in card.iterdir()}
    files = {"README.md", "about.json", "config.toml", "curve.png", "replay.mp4", "results.json", "state.json"}
    assert names == files | {"state.safetensors"}


def test_claims_are_what_eval_prints_of_the_folder(card: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", str(card), "--episodes", "7", "--workers", "0", "--json"]) == 0
    summary, results = json.loads(capsys.readouterr().out), json.loads((card / "results.json").read_text())
    assert (results["mean_reward"], results["std_reward"]) == (summary["mean"], summary["std"])
    front = yaml.safe_load((card / "README.md").read_text().split("---")[1])
    (metric,) = front["model-index"][0]["results"][0]["metrics"]
    assert metric["value"] == f"{summary['mean']:.2f} +/- {summary['std']:.2f}"
    assert front["tags"][-1] == "CartPole-v1"


def test_policy_is_the_runs_and_leaves_the_optimizer_behind(card: Path) -> None:
    np.testing.assert_array_equal(esker.load(card).parameters, esker.load(small_run()).parameters)
    assert not [name for name in open_checkpoint(card).snapshot.arrays if name.startswith("optimizer.")]


def test_card_starts_another_run(card: Path) -> None:
    run = small_run(seed=8, generations=1, init_from=str(card))
    np.testing.assert_array_equal(esker.load(run, 0).parameters, esker.load(card).parameters)


def first_return(card: Path) -> float:
    """The return of the first episode of an evaluation, played with what the card's code makes."""
    [code] = re.findall(r"```python\n(.*?)```", (card / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("path/to/this/folder", str(card)), names)
    return first_of_evaluation(names["env"], names["policy"])


def test_code_in_the_card_plays_the_policy(card: Path, tmp_path: Path) -> None:
    assert first_return(card) == esker.evaluate(card, episodes=1, workers=0)[0].returns[0]
    pytest.importorskip("ale_py")
    screen: dict[str, Any] = {"crop": (34, 194), "screen_size": 16, "screen_width": 4, "actions": ("RIGHT", "LEFT")}
    options: dict[str, Any] = {"network": "linear", "generations": 1, "max_episode_steps": 300}
    options |= {name: value for name, value in QUICK.items() if name != "hidden"}
    run = esker.train("ALE/Pong-v5", run_dir=tmp_path / "run", **screen, **options)
    assert main(["card", str(run.path), "--episodes", "1", "--workers", "0", "-o", str(tmp_path / "game")]) == 0
    assert first_return(tmp_path / "game") == json.loads((tmp_path / "game" / "results.json").read_text())["mean_reward"] < 0
    assert esker.make_env(run.path / "checkpoints" / "000001").observation_space.shape == (2, 16, 4)


def test_no_mark_of_the_template_is_left(card: Path) -> None:
    assert not re.search(r"\{\{|\}\}", (card / "README.md").read_text())


def test_command_in_the_card_gives_the_same_configuration() -> None:
    config = open_checkpoint(small_run()).config
    words = shlex.split(command(config).replace("\\\n", " "))
    parser = Parser(prog="esker train")
    parser.add_argument("env")
    parser.add_argument("--algo")
    parser.add_argument("--preset")
    add_options(parser, ESConfig)
    namespace = parser.parse_strictly(words[2:])
    given = {name: value for name, value in vars(namespace).items() if name not in ("env", "algo", "preset")}
    again = configure(namespace.env, given, algo=namespace.algo, preset=namespace.preset).config
    deciding = [name for name in vars(config) if name not in INCIDENTAL - {"seed"}]
    assert {name: getattr(again, name) for name in deciding} == {name: getattr(config, name) for name in deciding}


def test_environment_without_pictures_gets_a_card_without_a_replay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small_run("test_render:Blind", generations=1)
    assert main(["card", str(run), "--episodes", "2", "--workers", "0", "-o", str(tmp_path / "model")]) == 0
    assert "note: no replay.mp4: environment 'test_render:Blind' cannot render" in capsys.readouterr().err
    assert "replay.mp4" not in (tmp_path / "model" / "README.md").read_text()


def test_folder_that_holds_something_else_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    assert main(["card", str(small_run()), "-o", str(tmp_path)]) == 2
    assert "holds other files; choose another -o" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
