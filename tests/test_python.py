"""Python as full as the command line: comparing runs, presets, sweeps, and how things show themselves in notebooks."""

from __future__ import annotations

import io
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from small_runs import QUICK, small_run
from support import first_of_evaluation

import esker
from esker.logs.notebook import Notebook
from esker.logs.observers import observer_for


def test_comparison_is_a_table_of_configurations_with_their_seeds(tmp_path: Path) -> None:
    found = esker.compare([small_run(seed=0), esker.Run(small_run(seed=1)), small_run(lr=0.2)])
    assert [row[1:3] for row in found.rows()] == [("es lr=0.05", "2"), ("es lr=0.2", "1")]
    assert str(found).splitlines()[1].split()[:3] == ["CartPole-v1", "es", "lr=0.05"]
    assert found._repr_html_().count("<tr>") == 3
    assert "<!doctype html>" in found.report(tmp_path / "page.html").read_text()


def test_comparison_draws_a_picture_that_notebooks_show(tmp_path: Path) -> None:
    found = esker.compare([small_run()], labels=["ours"]).plot(tmp_path / "curve.svg", x="generations", smoothing=0.5)
    assert Image.open(io.BytesIO(found._repr_png_())).format == "PNG"
    assert ">ours<" in (tmp_path / "curve.svg").read_text()
    assert found.save(tmp_path / "c.png").read_bytes() == found.png


def test_presets_of_an_environment_and_all() -> None:
    assert {preset.env for preset in esker.presets("CartPole-v1")} == {"CartPole-v1"}
    assert len(esker.presets()) > 15
    assert esker.presets.load_all()["cartpole/es"].env == "CartPole-v1"  # type: ignore[attr-defined]  # it is a package, too
    with pytest.raises(esker.UsageError, match="no preset for 'Nothing-v0'"):
        esker.presets("Nothing-v0")


def test_sweep_returns_its_best_trial_and_a_preset(tmp_path: Path) -> None:
    options: dict[str, Any] = {**QUICK, "generations": 2, "pruner": "none", "sampler": "grid", "sweep_dir": tmp_path}
    del options["lr"], options["preset"]
    found = esker.sweep("CartPole-v1", space={"lr": [0.01, 0.1]}, trials=2, name="two", preset="none", **options)
    assert sorted(trial.params["lr"] for trial in found.trials) == [0.01, 0.1]
    assert found.best is not None
    assert found.best.value == max(trial.value or 0 for trial in found.trials)
    assert found.preset is not None
    assert "lr" in found.preset.read_text()
    assert found._repr_html_().count("<tr>") == 3
    assert found.report().is_file()


class Handle:
    """What IPython's `display(…, display_id=True)` returns."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, thing: Any) -> None:
        self.shown.append(thing._repr_html_())


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    found = Handle()
    module = types.ModuleType("IPython.display")
    module.display = lambda thing, display_id: found.update(thing) or found  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return found


def test_notebook_has_one_output_in_place(handle: Handle, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = QUICK | {"generations": 3, "quiet": False}
    esker.train("CartPole-v1", observer=Notebook(), run_dir=str(tmp_path / "run"), **options)
    assert capsys.readouterr().out == ""
    assert len(handle.shown) >= 2
    assert "generations done" in handle.shown[-1]
    assert "<polyline" in handle.shown[-1]
    assert "centre return" in handle.shown[-1]
    assert ">took " in handle.shown[-1]
    assert " left<" not in handle.shown[-1]


def test_notebook_is_recognised() -> None:
    console = Console(force_jupyter=True)
    assert isinstance(observer_for(console, quiet=False), Notebook)


@pytest.mark.parametrize("options", [{}, {"network": "gru", "hidden": (8,)}, {"normalize_observations": False}])
def test_batch_of_observations_gets_the_actions_of_each_alone(options: dict[str, Any]) -> None:
    run = small_run("Pendulum-v1", generations=1, **options)
    observations = np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32)
    batched = esker.load(run)
    found = np.stack([batched.act(step) for step in observations])
    for row in range(5):
        single = esker.load(run)
        np.testing.assert_array_equal(found[:, row], [single.act(step[row]) for step in observations])
    assert found.shape == (2, 5, 1)


def test_reset_of_one_row_forgets_that_row_only() -> None:
    policy = esker.load(small_run("Pendulum-v1", generations=1, network="gru", hidden=(8,)))
    observations = np.ones((3, 3), np.float32)
    first, second = policy.act(observations), policy.act(observations)
    policy.reset(1)
    third = policy.act(observations)
    assert (third[1] == first[1]).all()
    assert (third[0] != first[0]).all()
    assert (second != first).all()


def test_observation_of_another_shape_is_refused() -> None:
    policy = esker.load(small_run())
    for wrong in (np.zeros(3), np.zeros((2, 3)), np.zeros((2, 2, 4))):
        with pytest.raises(ValueError, match="shape"):
            policy.act(wrong)


def test_run_does_what_the_commands_do(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run = esker.train("CartPole-v1", run_dir=str(path), **(QUICK | {"generations": 2}))
    assert isinstance(run, esker.Run)
    assert Image.open(io.BytesIO(run.plot(x="generations")._repr_png_())).format == "PNG"
    assert run.report() == path / "report.html"
    result = run.evaluate(3, "latest", workers=0)
    assert (result.episodes, result.checkpoint) == (3, 2)
    assert result.mean == sum(result.returns) / 3
    video = run.render("latest", max_steps=3)
    assert video._repr_html_().startswith("<video controls")
    assert [file.name for file in run.export(formats=["state-dict"])] == ["policy_state_dict.pt"]
    assert run.card(tmp_path / "card", "latest", 2).results["n_eval_episodes"] == 2
    again = run.resume(generations=3)
    assert (type(again), len(again.history), again.path) == (esker.Run, 3, run.path)


def test_run_describes_itself(tmp_path: Path) -> None:
    run = esker.Run(small_run())
    assert repr(run).startswith(f"Run('{small_run()}': CartPole-v1; es, seed 0; 4 generations, ")
    assert repr(run).endswith("finished: 4 generations done)")
    assert "<polyline" in run._repr_html_()
    options: dict[str, Any] = {"workers": 0, "noise": "counter", "quiet": True, "run_dir": str(tmp_path / "f")}
    esker.Evolution(torch.zeros(3), lambda model: -float((model**2).sum()), **options).run(2)
    assert "reward function; function, seed 0; 2 generations" in repr(esker.Run(tmp_path / "f"))


def test_callback_at_the_end_gets_the_full_run(tmp_path: Path) -> None:
    seen: list[Any] = []
    options = QUICK | {"generations": 1}
    esker.train("CartPole-v1", run_dir=str(tmp_path / "run"), on_stop=seen.append, **options)
    assert [type(run) for run in seen] == [esker.Run]


def test_evaluation_is_named_and_still_a_pair() -> None:
    found = esker.evaluate(small_run(), episodes=2, workers=0)
    evaluation, notices = found
    assert (found.mean, found.returns, notices) == (evaluation.mean, evaluation.returns, [])


def test_folders_are_paths_too(tmp_path: Path) -> None:
    run = esker.train("CartPole-v1", run_dir=tmp_path / "run", **{**QUICK, "generations": 1})
    again = esker.train("CartPole-v1", run_dir=tmp_path / "again", init_from=tmp_path / "run", **{**QUICK, "generations": 1})
    assert (run.path, again.path) == (tmp_path / "run", tmp_path / "again")
    assert again.config.init_from == str(tmp_path / "run")


def played(run: esker.Run, **options: Any) -> float:
    """The return of the first episode of an evaluation, played by hand."""
    return first_of_evaluation(run.make_env(**options), run.policy())


def test_a_run_makes_the_environment_that_its_policy_knows(tmp_path: Path) -> None:
    pytest.importorskip("ale_py")
    small = {"workers": 0, "generations": 2, "population": 4, "center_episodes": 1, "quiet": True, "preset": None}
    screen = {
        "crop": (34, 194),
        "screen_size": 16,
        "screen_width": 4,
        "actions": ("RIGHT", "LEFT"),
        "max_episode_steps": 300,
    }
    game = esker.train("ALE/Pong-v5", run_dir=str(tmp_path / "game"), network="linear", **screen, **small)
    assert played(game) == game.evaluate(1, workers=0).returns[0] < 0
    cart = esker.Run(esker.train("CartPole-v1", run_dir=str(tmp_path / "cart"), wrapper="worlds:scale_reward", **small).path)
    assert played(cart, render_mode="rgb_array") == cart.evaluate(1, workers=0).returns[0]
    assert cart.make_env(render_mode="rgb_array").render_mode == "rgb_array"


def test_a_run_of_evolution_has_no_environment(tmp_path: Path) -> None:
    evolution = esker.Evolution(torch.zeros(2), lambda w: -float((w**2).sum()), workers=0, run_dir=str(tmp_path / "run"))
    evolution.run(1)
    with pytest.raises(esker.UsageError, match="whose model is not a policy of an environment"):
        esker.Run(tmp_path / "run").make_env()
