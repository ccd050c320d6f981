"""The algorithms with gradients end to end: exact for any worker count, after any stop, and honest about the rest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import esker
from esker.runs import checkpoints

SMALL = {
    "hidden": (8, 8),
    "batch_size": 8,
    "initial_steps": 40,
    "center_episodes": 2,
    "quiet": True,
    "checkpoint_every": 1,
    "keep": None,
    "workers": 0,
}
KINDS = {
    "td3": {"generation_steps": 30},
    "cem-rl": {"population": 4, "rl_population": 2},
    "p-cem-rl": {"population": 4, "rl_population": 2},
    "acem-rl": {"population": 4, "results_per_generation": 3, "critic_chunk": 20, "deterministic": True},
    "one-plus-one": {"results_per_generation": 3, "mean_episodes": 2, "critic_chunk": 20, "deterministic": True},
    "aes-rl": {
        "results_per_generation": 3,
        "mean_episodes": 2,
        "critic_chunk": 20,
        "deterministic": True,
        "mean_update_param": 5.0,
    },
}
ENV = "hybrid_worlds:Reach"


def train(algo, path, generations=4, **more):
    options = SMALL | KINDS[algo] | {"generations": generations, "run_dir": str(path)} | more
    return esker.train(ENV, algo=algo, **options)


def state(path, generation):
    """Every array of a snapshot, as bytes, and its values without the clock."""
    snapshot = checkpoints.read(Path(path) / "checkpoints" / checkpoints.folder_name(generation))
    values = json.loads(json.dumps(snapshot.values))
    values["progress"].pop("wall_time")
    return {name: array.tobytes() for name, array in snapshot.arrays.items()}, values


def journal(path):
    rows = [json.loads(line) for line in (Path(path) / "journal.jsonl").read_text().splitlines()]
    return [{n: v for n, v in row.items() if n not in ("wall_time", "steps_per_second")} for row in rows]


@pytest.mark.parametrize("algo", KINDS)
def test_a_resumed_run_ends_with_the_bits_of_one_that_never_stopped(algo, tmp_path):
    train(algo, tmp_path / "whole", generations=5)
    train(algo, tmp_path / "parts", generations=2)
    esker.resume(tmp_path / "parts", generations=5)
    assert state(tmp_path / "parts", 5) == state(tmp_path / "whole", 5)
    assert journal(tmp_path / "parts") == journal(tmp_path / "whole")
    whole, parts = ((tmp_path / name / "replay").read_bytes() for name in ("whole", "parts"))
    count = journal(tmp_path / "whole")[-1]["training_steps"] * 7 * 4
    assert whole[:count] == parts[:count]


@pytest.mark.parametrize("algo", ["cem-rl", "p-cem-rl", "aes-rl"])
def test_worker_processes_give_the_bits_of_this_process(algo, tmp_path):
    train(algo, tmp_path / "inside", generations=2)
    train(algo, tmp_path / "apart", generations=2, workers=1 if algo == "aes-rl" else 2)
    assert state(tmp_path / "inside", 2) == state(tmp_path / "apart", 2)


@pytest.mark.parametrize("algo", KINDS)
def test_the_parameters_move_and_depend_on_the_seed(algo, tmp_path):
    first = train(algo, tmp_path / "a", generations=3).policy("latest").parameters
    other = train(algo, tmp_path / "b", generations=3, seed=1).policy("latest").parameters
    start = checkpoints.read(tmp_path / "a" / "checkpoints" / "000000").arrays["center"]
    assert not np.array_equal(first, other)
    assert not np.array_equal(first, start)
    last = journal(tmp_path / "a")[-1]
    assert last["critic_loss"] > 0
    assert np.isfinite(last["actor_loss"])


@pytest.mark.parametrize("algo", ["cem-rl", "p-cem-rl", "acem-rl", "one-plus-one", "aes-rl"])
def test_evolution_is_alone_until_rl_starts_and_the_share_counts_from_there(algo, tmp_path):
    more = {} if algo.endswith("cem-rl") and algo != "acem-rl" else {"rl_ratio": 0.5}
    rows = train(algo, tmp_path / "run", generations=8, rl_start=150, **more).history
    # a row's individuals were decided on by the training steps that there were before each of them
    alone = [row for row in rows if row["training_steps"] <= 150]
    late = [row for row in rows if row["training_steps"] >= 190]
    assert alone
    assert late
    assert all(row["rl_return_mean"] is None and row["actor_updates"] == 0 for row in alone)
    assert late[-1]["actor_updates"] > 0
    trained = sum(row["rl_return_mean"] is not None for row in late)
    assert trained >= len(late) - 1
    if more:  # those before do not count, or all that follow would be trained
        assert 0.2 < late[-1]["rl_share"] < 0.8
    train(algo, tmp_path / "parts", generations=2, rl_start=150, **more)
    esker.resume(tmp_path / "parts", generations=8)
    assert state(tmp_path / "parts", 8) == state(tmp_path / "run", 8)


def test_td3_learns_to_reach(tmp_path):
    run = train("td3", tmp_path / "run", generations=12, generation_steps=100, hidden=(32, 32), batch_size=64, lr=1e-3)
    result, _ = esker.evaluate(run.path, episodes=30, workers=0)
    untrained, _ = esker.evaluate(run.path, episodes=30, workers=0, checkpoint=0)
    assert np.mean(result.returns) > -3.0 > -6.0 > np.mean(untrained.returns)


def test_the_policy_acts_within_the_bounds_and_as_in_training(tmp_path):
    run = train("cem-rl", tmp_path / "run", generations=1)
    policy = run.policy("best")
    assert -0.5 <= float(policy.act(np.array([0.3, 0.0]))[0]) <= 1.5
    best = checkpoints.folder_name(checkpoints.pointed(run.folder.best_file))
    assert np.array_equal(policy.parameters, checkpoints.read(run.path / "checkpoints" / best).arrays["center"])


def test_every_simulated_step_is_counted(tmp_path):
    rows = train("aes-rl", tmp_path / "run", generations=2).history
    last = rows[-1]
    told = sum(row["members"] for row in rows)
    warm = 40  # four episodes of random play
    assert last["training_steps"] == warm + told * 10
    # each individual is compared with two episodes of the mean, and those of the first one serve as the centre's
    assert last["env_steps"] == last["training_steps"] + told * 2 * 10
    assert last["critic_updates"] == last["training_steps"] // 20 * 20


def test_the_centre_has_its_own_episodes_where_the_mean_has_fewer(tmp_path):
    rows = train("aes-rl", tmp_path / "run", generations=2, mean_episodes=1, center_episodes=3).history
    told = sum(row["members"] for row in rows)
    assert rows[-1]["env_steps"] == rows[-1]["training_steps"] + told * 10 + 2 * 3 * 10


@pytest.mark.parametrize("deterministic", [True, False])
def test_no_critic_is_trained_in_vain(deterministic, tmp_path):
    rows = train("aes-rl", tmp_path / "run", generations=2, rl_ratio=0.0, deterministic=deterministic, workers=1).history
    assert rows[-1]["critic_updates"] == rows[-1]["actor_updates"] == 0


def test_the_critic_is_never_ahead_of_the_steps_and_random_play_is_never_told(tmp_path):
    run = train("acem-rl", tmp_path / "run", generations=3, deterministic=False, workers=2)
    for row in run.history:
        assert row["critic_updates"] <= row["training_steps"]
        assert row["members"] >= 3
    assert run.history[-1]["training_steps"] >= 40 + 9 * 10


def test_p_cem_rl_trains_its_critic_in_parallel_when_asked_to(tmp_path):
    options = {"parallel_critic": True, "critic_chunk": 5, "workers": 1, "wall_time": 60.0}
    enough = lambda row: row["critic_updates"] > 20  # noqa: E731
    run = train("p-cem-rl", tmp_path / "run", generations=1000, on_generation=enough, **options)
    assert run.history[-1]["critic_updates"] > 20


@pytest.mark.parametrize("algo", ["cem-rl", "p-cem-rl"])
def test_batched_training_changes_the_trained_members_and_stays_exact(algo, tmp_path):
    train(algo, tmp_path / "single", generations=2)
    train(algo, tmp_path / "whole", generations=4, batched_rl=True)
    assert state(tmp_path / "whole", 2) != state(tmp_path / "single", 2)
    single, whole = (journal(tmp_path / name) for name in ("single", "whole"))
    names = ("training_steps", "critic_updates", "actor_updates")  # the same work in another order
    assert [whole[1][name] for name in names] == [single[1][name] for name in names]
    train(algo, tmp_path / "parts", generations=1, batched_rl=True, workers=2)
    esker.resume(tmp_path / "parts", generations=4)
    assert state(tmp_path / "parts", 4) == state(tmp_path / "whole", 4)


def test_batched_training_leaves_the_critics_of_a_generation_as_they_are(tmp_path):
    # the critic always meets members that are not trained yet; only what members climb differs: in cem-rl, a later critic
    critics = set()
    for algo in ("cem-rl", "p-cem-rl"):
        for batched in (False, True):
            path = tmp_path / f"{algo}-{batched}"
            train(algo, path, generations=1, batched_rl=batched)
            critics.add(state(path, 1)[0]["critic"])
    assert len(critics) == 1


def test_uncommitted_generations_are_trained_again_to_the_same_rows(tmp_path):
    train("cem-rl", tmp_path / "whole", generations=4)
    train("cem-rl", tmp_path / "run", generations=4)
    for number in ("000004", "000003"):
        (tmp_path / "run" / "checkpoints" / number / "state.safetensors").write_bytes(b"damaged")
    esker.resume(tmp_path / "run")
    assert state(tmp_path / "run", 4) == state(tmp_path / "whole", 4)
    assert journal(tmp_path / "run") == journal(tmp_path / "whole")


def test_a_killed_run_resumes_to_the_same_bits(tmp_path):
    train("p-cem-rl", tmp_path / "whole", generations=6)
    code = (
        "import sys, esker; "
        f"esker.train({ENV!r}, algo='p-cem-rl', generations=6, run_dir={str(tmp_path / 'run')!r}, "
        f"**{SMALL | KINDS['p-cem-rl'] | {'workers': 2}!r})"
    )
    path = os.pathsep.join([str(Path(__file__).parent.parent), str(Path(__file__).parent)])
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path})
    while not (tmp_path / "run" / "checkpoints" / "000002").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    esker.resume(tmp_path / "run", workers=0)
    assert state(tmp_path / "run", 6) == state(tmp_path / "whole", 6)
    assert journal(tmp_path / "run") == journal(tmp_path / "whole")


def test_a_run_without_a_replay_file_says_that_its_resume_is_inexact(tmp_path, capsys):
    train("td3", tmp_path / "run", generations=2, replay_file=False)
    assert not (tmp_path / "run" / "replay").exists()
    run = esker.resume(tmp_path / "run", generations=3, quiet=False)
    assert "this resume is not exact" in capsys.readouterr().out
    assert len(run.history) == 3


@pytest.mark.parametrize("algo", KINDS)
def test_a_resume_without_the_replay_learns_from_nothing_but_transitions(algo, tmp_path, monkeypatch):
    from esker.learners.batches import Batches

    train(algo, tmp_path / "run", generations=3, replay_file=False)
    drawn = []
    draw = Batches.draw
    monkeypatch.setattr(Batches, "draw", lambda self: drawn.append(draw(self)) or drawn[-1])
    run = esker.resume(tmp_path / "run", generations=6)
    assert len(run.history) == 6
    assert drawn
    assert all((batch.abs().sum(dim=1) > 0).all() for batch in drawn)


@pytest.mark.parametrize("stopped", [False, True])
def test_a_worker_that_dies_or_stops_is_replaced_and_nothing_changes(tmp_path, monkeypatch, stopped):
    if stopped:
        monkeypatch.setenv("ESKER_TEST_STOP", "1")
    esker.train("hybrid_worlds:Deadly", algo="cem-rl", **SMALL | KINDS["cem-rl"], generations=2, run_dir=str(tmp_path / "a"))
    flag = tmp_path / "kill"
    monkeypatch.setenv("ESKER_TEST_KILL", str(flag))
    options = SMALL | KINDS["cem-rl"] | {"workers": 2}
    stop = lambda row: flag.write_text("x") and False  # noqa: E731 - armed after the first generation
    esker.train(
        "hybrid_worlds:Deadly", algo="cem-rl", **options, generations=2, run_dir=str(tmp_path / "b"), on_generation=stop
    )
    assert state(tmp_path / "a", 2) == state(tmp_path / "b", 2)


def test_what_is_not_finite_stops_the_run_and_names_it(tmp_path):
    with pytest.raises(esker.RunError, match=r"hybrid_worlds:Broken, warm-up episode 0, seed \d+: FloatingPointError"):
        esker.train(
            "hybrid_worlds:Broken", algo="cem-rl", **SMALL | KINDS["cem-rl"], generations=1, run_dir=str(tmp_path / "r")
        )


def test_a_step_that_never_ends_stops_the_run(tmp_path):
    options = SMALL | KINDS["cem-rl"] | {"workers": 1, "step_timeout": 0.5, "generations": 1}
    with pytest.raises(esker.RunError, match=r"a step took longer than 0.5 s, 3 times in a row"):
        esker.train("hybrid_worlds:Hanging", algo="cem-rl", **options, run_dir=str(tmp_path / "r"))
