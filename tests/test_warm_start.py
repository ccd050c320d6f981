"""Warm starts from runs, checkpoints and state dicts."""

import shutil
from functools import partial

import numpy as np
import pytest
import torch

import esker
from esker.runs.request import configure
from esker.strategies.cma import CMA
from esker.strategies.restarts import Restarts

SMALL = {
    "preset": None,
    "noise": "counter",
    "workers": 0,
    "population": 8,
    "generations": 2,
    "hidden": (8,),
    "checkpoint_every": 1,
}


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("source") / "run"
    return esker.train("CartPole-v1", run_dir=str(path), **SMALL)


def center(run, checkpoint=0):
    return run.policy(checkpoint).parameters


def test_a_run_gives_its_best_parameters_and_statistics(source, tmp_path):
    run = esker.train("CartPole-v1", **SMALL | {"init_from": str(source.path), "sigma": 0.5, "run_dir": str(tmp_path / "b")})
    assert (center(run) == center(source, "best")).all()
    from esker.runs import checkpoints

    best = checkpoints.pointed(source.folder.best_file)
    theirs = checkpoints.read(source.folder.checkpoints / f"{best:06d}").arrays
    ours = checkpoints.read(run.folder.checkpoints / "000000").arrays
    assert (ours["statistics.total"] == theirs["statistics.total"]).all()
    assert "optimizer.exp_avg" not in ours


def test_a_checkpoint_folder_gives_its_own_parameters(source, tmp_path):
    path = source.path / "checkpoints" / "000002"
    run = esker.train("CartPole-v1", **SMALL | {"init_from": str(path), "run_dir": str(tmp_path / "b")})
    assert (center(run) == center(source, 2)).all()


def test_a_state_dict_gives_its_tensors_in_order(tmp_path):
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    torch.save(module.state_dict(), tmp_path / "w.pt")
    run = esker.train("CartPole-v1", **SMALL | {"init_from": str(tmp_path / "w.pt"), "run_dir": str(tmp_path / "b")})
    flat = torch.cat([p.detach().ravel() for p in module.parameters()]).numpy()
    assert (center(run) == flat).all()


def test_a_warm_run_resumes_without_its_source(source, tmp_path):
    copy = tmp_path / "source"
    shutil.copytree(source.path, copy)
    options = SMALL | {"init_from": str(copy)}
    whole = esker.train("CartPole-v1", **options | {"generations": 3, "run_dir": str(tmp_path / "whole")})
    part = esker.train("CartPole-v1", **options | {"generations": 1, "run_dir": str(tmp_path / "part")})
    shutil.rmtree(copy)
    resumed = esker.resume(part.path, generations=3)
    assert (center(resumed, "latest") == center(whole, "latest")).all()


def test_other_shapes_are_refused_showing_both(source, tmp_path):
    with pytest.raises(
        esker.UsageError, match=r"8×4 8 2×8 2 \(58 numbers\), this network has 16×4 16 2×16 2 \(114 numbers\)"
    ):
        esker.train("CartPole-v1", **SMALL | {"hidden": (16,), "init_from": str(source.path)})


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "executed"), "w"))

    (tmp_path / "w.pt").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(esker.UsageError, match="is not a state dict"):
        esker.train("CartPole-v1", **SMALL | {"init_from": str(tmp_path / "w.pt")})
    assert not (tmp_path / "executed").exists()


def test_a_source_that_is_missing_is_named():
    with pytest.raises(esker.UsageError, match="init_from is 'nowhere', which does not exist"):
        esker.train("CartPole-v1", **SMALL | {"init_from": "nowhere"})


def test_a_linear_network_from_zero_acts_with_its_first_action(tmp_path):
    options = {k: v for k, v in SMALL.items() if k != "hidden"}
    run = esker.train("CartPole-v1", **options, network="linear", initializer="zero", run_dir=str(tmp_path / "a"))
    assert center(run).size == 2 * 4 + 2
    assert not center(run).any()
    assert run.policy(0).act(np.ones(4)) == 0


def test_a_policy_that_acts_differently_here_is_named(source, tmp_path):
    changed = SMALL | {"init_from": str(source.path), "run_dir": str(tmp_path / "b"), "generations": 1}
    from esker.runs.session import start

    plain = {name: value for name, value in changed.items() if name != "preset"}
    asked = configure("CartPole-v1", plain | {"activation": "relu", "normalize_observations": False}, preset=None)
    [notice] = [text for text in start(asked).notices if text.startswith("initial parameters")]
    assert "trained with --activation tanh --normalize-observations, and acts differently without" in notice
    asked = configure("CartPole-v1", plain | {"run_dir": str(tmp_path / "c")}, preset=None)
    assert not any("acts differently" in text for text in start(asked).notices)


def test_a_policy_of_a_game_that_sees_or_does_other_things_here_is_named(tmp_path):
    pytest.importorskip("ale_py")
    from esker.runs.session import start

    small = {key: value for key, value in SMALL.items() if key not in ("hidden", "preset")} | {"generations": 1}
    small |= {"network": "linear", "population": 2, "center_episodes": 1, "max_episode_steps": 5, "screen_size": 16}
    game = small | {"crop": (34, 194), "actions": ("RIGHT", "LEFT"), "frame_stack": None}
    run = esker.train("ALE/Pong-v5", preset=None, run_dir=str(tmp_path / "game"), **game)

    def notice(name, **changes):
        asked = {**game, **changes, "init_from": str(run.path), "run_dir": str(tmp_path / name)}
        notices = start(configure("ALE/Pong-v5", asked, preset=None)).notices
        return next(text for text in notices if text.startswith("initial parameters")).partition("trained with ")[2]

    assert notice("inverted", actions=("LEFT", "RIGHT")) == "--actions RIGHT,LEFT, and acts differently without"
    assert notice("whole", crop=(), fire=False).startswith("--crop 34,194 --fire, and")
    assert notice("alike", frame_stack=2, sticky_actions=0.25, noop_max=0) == ""
    del game["crop"], game["actions"]
    run = esker.train("ALE/Pong-v5", preset=None, run_dir=str(tmp_path / "six"), **game)
    assert notice("cropped", crop=(34, 194)) == "--crop none, and acts differently without"


def test_a_restart_of_a_warm_run_begins_near_its_warm_start(tmp_path):
    strategy = Restarts(partial(CMA, center=torch.zeros(3), sigma=0.01), restarts=1)
    strategy.center.numpy()[:] = 100.0  # what a warm start does
    copy = Restarts(partial(CMA, center=torch.zeros(3), sigma=0.01), restarts=1)
    strategy.tell(np.zeros(strategy.population))
    copy.load_state_dict(strategy.state_dict())
    for one in (strategy, copy):
        one._again()
        assert (one.center - 100).abs().max() < 1
