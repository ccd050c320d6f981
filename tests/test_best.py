"""The best centre: chosen by a rule that lucky readings cannot fool, and the last centre takes part."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import esker
from esker.algorithms.es import EvolutionStrategy
from esker.algorithms.loop import conclude
from esker.algorithms.progress import CERTAIN, STEADY, Progress, lower_bound, newest
from esker.algorithms.snapshot import Snapshot
from esker.cluster import copies
from esker.config.options import ESConfig, StopOptions
from esker.engines.engine import InlineEngine
from esker.runs import checkpoints
from esker.runs.folder import RunFolder
from esker.runs.pointers import wanted

CONFIG = ESConfig()


def told(readings: list[list[float]]) -> Progress:
    progress = Progress()
    for generation, returns in enumerate(readings):
        progress.count_center(CONFIG, generation, returns)
    return progress


def test_lower_bound_is_the_mean_less_one_standard_error() -> None:
    assert lower_bound([1.0, 3.0]) == 2.0 - math.sqrt(2) / math.sqrt(2)
    assert lower_bound([5.0]) == 5.0


def test_until_enough_episodes_were_seen_the_newest_is_the_best() -> None:
    progress = told([[9.0, 9.0], [1.0, 1.0]])
    assert (progress.best_generation, progress.best_bound) == (1, None)


def test_one_lucky_reading_does_not_make_the_best() -> None:
    luck = [[100.0, 100.0]] * 10 + [[130.0, 130.0]] + [[105.0, 105.0]] * 10
    assert told(luck).best_generation == len(luck) - 2  # the lucky one is still in the window then, among better ones


def test_a_later_decline_leaves_the_best_where_it_was() -> None:
    rising = [[float(value)] * 4 for value in range(0, 100, 10)]
    falling = [[float(value)] * 4 for value in range(90, 0, -10)]
    best = told(rising + falling).best_generation
    assert best is not None
    assert len(rising) <= best <= len(rising) + 2


def test_noise_chooses_within_the_plateau_and_not_the_lucky_start() -> None:
    rng = np.random.default_rng(0)
    readings = [(5000 + rng.normal(0, 1500, 2)).tolist() for _ in range(100)]
    readings += [(7000 + rng.normal(0, 300, 2)).tolist() for _ in range(100)]
    best = told(readings).best_generation
    assert best is not None
    assert best >= 105


def test_a_reading_that_is_not_finite_is_never_the_best() -> None:
    progress = told([[1.0] * CERTAIN])
    assert not progress.improves([math.nan])
    progress.count_center(CONFIG, 1, [math.nan])
    assert progress.best_generation == 0


def test_the_last_policy_takes_part_in_the_choice(tmp_path: Path) -> None:
    options = {"hidden": (8,), "initial_steps": 50, "training_steps": 250, "generation_steps": 200, "batch_size": 16}
    run = esker.train("Pendulum-v1", algo="td3", preset=None, run_dir=str(tmp_path / "run"), quiet=True, **options)
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    assert final["generation"] == len(run.history)
    assert run.folder.best_file.read_text().strip() == f"{final['generation']:06d}"
    assert (run.best_return, final["best_episodes"]) == (final["best_mean"], CERTAIN)
    assert final["best_return"] == final["center_return"]  # of too few episodes for neighbours to count: its own mean
    returns, _ = esker.evaluate(run.path, episodes=1, workers=0)
    assert returns.checkpoint == final["generation"]


@pytest.mark.parametrize("algo", ["es", "cem-rl"])
def test_a_run_that_continues_sees_the_last_centre_again_as_its_next_generation(algo: str, tmp_path: Path) -> None:
    small = {"population": 4, "center_episodes": 2, "workers": 0, "preset": None, "quiet": True}
    more = (
        {"noise": "counter"} if algo == "es" else {"hidden": (8,), "initial_steps": 20, "batch_size": 8, "rl_population": 2}
    )
    esker.train("Pendulum-v1", algo=algo, run_dir=str(tmp_path / "run"), generations=2, **small, **more)
    final = json.loads((tmp_path / "run" / "final.json").read_text())
    rows = esker.resume(tmp_path / "run", generations=3, quiet=True).history
    assert rows[2]["center_return"] == pytest.approx(final["center_return"], rel=1e-12)


class Told:
    """A state that ends after readings of `means`, and a record of its snapshots, as `conclude` sees them."""

    config, generation = CONFIG, 5

    def __init__(self, means: list[float]) -> None:
        self.progress = told([[mean] * 5 for mean in means])
        self.pointed = self.progress.best_generation

    def snapshot(self) -> Snapshot:
        return Snapshot(self.generation, {}, {})

    def stored(self, generation: int) -> Snapshot | None:
        return Snapshot(generation, {}, {})

    def checkpoint(self, snapshot: Snapshot, *, best: bool = False, latest: bool = False) -> None:
        self.pointed = snapshot.generation


@pytest.mark.parametrize(("last", "best"), [(90.0, 5), (-900.0, 4)])
def test_the_best_is_reported_by_what_it_reaches_alone(last: float, best: int) -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    row = conclude(state, state, [last] * 5, lambda snapshot, *_: [100.0 * snapshot.generation, math.nan])
    assert state.pointed == best
    assert (row["best_mean"], row["best_episodes"]) == (100.0 * best, 1)
    assert row["best_return"] < 50  # by which it was chosen: a mean with the centres before it


def test_the_newest_readings_are_whole_and_no_more_than_needed() -> None:
    parts = [[1.0, 2.0], [3.0, 4.0, 5.0], [6.0]]
    assert newest(parts, 1) == [6.0]
    assert newest(parts, 2) == [3.0, 4.0, 5.0, 6.0]
    assert newest(parts, 9) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_over_more_episodes_luck_does_not_decide() -> None:
    rng = np.random.default_rng(1)
    readings = [[1000.0 if rng.random() < 0.8 else 0.0 for _ in range(2)] for _ in range(300)]  # falls in every fifth
    readings += [[950.0 if rng.random() < 0.95 else 0.0 for _ in range(2)] for _ in range(100)]  # in every twentieth
    progress = Progress()
    for generation, returns in enumerate(readings):
        progress.count_center(CONFIG, generation, returns, snapshot=generation % 10 == 0)
    assert progress.best_bound == 1000.0  # twenty episodes without a fall: luck
    assert progress.best_generation is not None
    assert progress.best_generation < 300
    assert progress.steady_generation is not None
    assert progress.steady_generation > 300
    assert progress.steady_generation % 10 == 0  # one that has a snapshot
    assert progress.candidates == {progress.best_generation, progress.steady_generation}
    assert sum(map(len, progress.recent)) == STEADY


def test_a_reading_of_a_function_is_no_episode_and_keeps_no_second_candidate() -> None:
    progress = Progress()
    for generation in range(200):
        progress.count_center(CONFIG, generation, [float(generation)], certain=1)
    assert (progress.candidates, progress.recent) == ({199}, [[199.0]])


@pytest.mark.parametrize("winner", [2, 4, 5])
def test_at_the_end_the_candidates_play_the_same_episodes_and_the_highest_mean_is_the_best(winner: int) -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    state.progress.episodes, state.progress.steady_generation = 100_000, 2
    asked: list[tuple[int, int, int]] = []

    def play(snapshot: Snapshot, episodes: int, first: int) -> list[float]:
        asked.append((snapshot.generation, episodes, first))
        return [9.0 if snapshot.generation == winner else 8.0] * episodes

    row = conclude(state, state, [-900.0] * 5, play)  # by the rule, the best stays generation 4
    assert sorted(asked[:-1]) == [(2, STEADY, 0), (4, STEADY, 0), (5, STEADY, 0)]
    assert asked[-1] == (winner, CERTAIN, STEADY)  # others than those by which it was chosen
    assert (row["best_generation"], row["best_return"], row["best_mean"]) == (winner, 9.0, 9.0)
    assert row["candidates"] == {"2": 8.0, "4": 8.0, "5": 8.0, str(winner): 9.0}
    assert state.progress.best_generation == 4  # a resumed run goes on from the rule's


def test_a_candidate_that_fails_in_an_episode_is_not_the_best_and_short_runs_have_no_race() -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    state.progress.episodes = 100_000
    row = conclude(state, state, [90.0] * 5, lambda snapshot, *_: [math.nan if snapshot.generation == 5 else 1.0])
    assert row["best_generation"] == 4
    state.progress.episodes = 1_999  # 2%: 39 episodes, fewer than twice 20
    row = conclude(state, state, [-900.0] * 5, lambda snapshot, *_: [float(snapshot.generation)])
    assert (row["best_generation"], "candidates" in row) == (4, False)


class Push(gym.Env[Any, Any]):
    """One step, whose reward is the action: every episode of a policy has the same return."""

    observation_space, action_space = gym.spaces.Box(1, 1, (1,), np.float64), gym.spaces.Box(-9, 9, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.ones(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.ones(1), float(action[0]), True, False, {}


def test_the_reported_best_is_that_of_its_checkpoint_and_not_of_those_before(tmp_path: Path) -> None:
    small = {"population": 8, "network": "linear", "sigma": 0.5, "lr": 0.5, "generations": 8, "workers": 0, "preset": None}
    run = esker.train(Push, run_dir=str(tmp_path / "run"), quiet=True, normalize_observations=False, **small)
    assert run.history[-1]["best_return"] < run.history[-1]["center_return"] - 0.5  # it rises, and so does the mean, later
    assert run.best_return == run.evaluate(2, workers=0).mean


def test_equal_returns_leave_no_doubt_about_the_best(tmp_path: Path) -> None:
    small = {"population": 2, "hidden": (2,), "generations": 2, "workers": 0, "preset": None, "center_episodes": 1}
    run = esker.train("worlds:Corridor", run_dir=str(tmp_path / "run"), quiet=True, **small)
    assert run.folder.best_file.read_text().strip() == "000002"
    assert esker.evaluate(run.path, episodes=1, workers=0).notices == []
    assert wanted(run.resume(generations=3, quiet=True).folder, "best", 3) == (3, [])


LONG: dict[str, Any] = {
    "population": 100,
    "network": "linear",
    "sigma": 0.5,
    "workers": 0,
    "preset": None,
    "quiet": True,
    "keep": 1,
}
LONG |= {"checkpoint_every": 5, "center_episodes": 4, "normalize_observations": False, "noise": "counter", "lr": 2.0}


class Hill(Push):
    """One step, whose reward is highest for an action of 3, which large steps pass by again and again."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.ones(1), -abs(float(action[0]) - 3.0), True, False, {}


def final_of(run: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run.path / "final.json").read_text())
    return found


def test_a_long_run_ends_with_the_winner_and_a_resumed_one_is_as_if_it_had_never_ended(tmp_path: Path) -> None:
    first = esker.train(Hill, run_dir=str(tmp_path / "parts"), generations=60, **LONG)
    final = final_of(first)
    means = {int(generation): mean for generation, mean in final["candidates"].items()}
    assert means[final["best_generation"]] == max(means.values())
    assert checkpoints.pointed(first.folder.best_file) == final["best_generation"]
    assert wanted(first.folder, "best", 60) == (final["best_generation"], [])
    assert first.best_return == first.evaluate(2, workers=0).mean
    assert set(means) <= set(checkpoints.generations(first.folder.checkpoints))  # spared, though only one is kept
    second = first.resume(generations=90, quiet=True)
    whole = esker.train(Hill, run_dir=str(tmp_path / "whole"), generations=90, **LONG)
    assert final_of(second) == final_of(whole)
    assert second.folder.best_file.read_text() == whole.folder.best_file.read_text()
    states = [run.path / "checkpoints" / "000090" / "state.safetensors" for run in (second, whole)]
    assert states[0].read_bytes() == states[1].read_bytes()


def test_a_run_that_goes_on_forgets_what_was_chosen_at_its_former_end(tmp_path: Path) -> None:
    run = esker.train(Hill, run_dir=str(tmp_path / "run"), generations=60, **LONG)
    folder, other = RunFolder.open(run.path), 0  # the first snapshot is always kept
    folder.write_final({**final_of(run), "best_generation": other})
    assert wanted(folder, "best", 60) == (other, [])
    stopped = run.resume(generations=70, quiet=True, on_generation=lambda row: "enough")
    assert not (run.path / "final.json").exists()
    assert wanted(stopped.folder, "best", 61)[1] == []
    rule = esker.train(
        Hill, run_dir=str(tmp_path / "rule"), generations=70, on_generation=lambda r: r["generation"] == 60, **LONG
    )
    assert stopped.folder.best_file.read_text() == rule.folder.best_file.read_text()


@pytest.mark.parametrize("lost", ["final.json", "best"])
def test_a_crash_between_the_two_files_of_the_end_is_no_damage(lost: str, tmp_path: Path) -> None:
    run = esker.train(Hill, run_dir=str(tmp_path / "run"), generations=60, **LONG)
    folder = RunFolder.open(run.path)
    folder.write_status("running")
    rule = json.loads((run.path / "checkpoints" / "000060" / "state.json").read_text())["best_generation"]
    if lost == "best":  # final.json was written, `best` not yet
        folder.write_final({**final_of(run), "best_generation": 0})
    checkpoints.point(folder.best_file, rule)
    if lost == "final.json":
        (run.path / "final.json").unlink()
    assert wanted(folder, "best", 60) == (rule, [])


class Noisy(Hill):
    """As Hill, with a reward that an episode's seed disturbs."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.noise = np.random.default_rng(seed).normal()
        return np.ones(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, reward + float(self.noise), *rest


def test_a_candidate_plays_all_its_episodes_at_once_and_no_more_than_the_share(tmp_path: Path, monkeypatch: Any) -> None:
    plans: list[tuple[int, int]] = []
    evaluate = InlineEngine.evaluate

    def seen(self: Any, job: Any, plan: Any) -> None:
        evaluate(self, job, plan)
        if job.only_center:
            lengths = {result.length for result in plan.of_center()}
            assert (lengths, len({result.total for result in plan.of_center()})) == ({1}, plan.center)  # seeds of their own
            plans.append((job.generation, plan.center))

    monkeypatch.setattr(InlineEngine, "evaluate", seen)
    run = esker.train(Noisy, run_dir=str(tmp_path / "run"), generations=40, **LONG | {"center_episodes": 30})
    episodes = int(0.02 * 40 * 130) // len(final_of(run)["candidates"])
    assert plans == [(41, episodes)] * len(final_of(run)["candidates"]) + [(41 + STEADY, CERTAIN)]


def test_the_end_is_no_part_of_the_time_limit(tmp_path: Path, monkeypatch: Any) -> None:
    play = EvolutionStrategy._play

    def slow(*arguments: Any) -> list[float]:
        time.sleep(0.7)
        return play(*arguments)

    monkeypatch.setattr(EvolutionStrategy, "_play", slow)
    run = esker.train(Hill, run_dir=str(tmp_path / "run"), wall_time=1.5, **LONG)
    assert final_of(run)["generation"] == len(run.history)
    assert run.folder.status() == "finished: 2 s of training done"


@pytest.mark.parametrize("which", ["race", "winner"])
def test_an_interrupt_while_the_best_is_chosen_leaves_the_rules(which: str, tmp_path: Path, monkeypatch: Any) -> None:
    play = EvolutionStrategy._play

    def interrupted(self: Any, engine: Any, snapshot: Snapshot, episodes: int, first: int) -> list[float]:
        if first or which == "race":
            raise KeyboardInterrupt
        return play(self, engine, snapshot, episodes, first)

    with monkeypatch.context() as patched:
        patched.setattr(EvolutionStrategy, "_play", interrupted)
        for seed in range(4):
            with pytest.raises(KeyboardInterrupt):
                esker.train(Noisy, run_dir=str(tmp_path / f"{seed}"), generations=60, seed=seed, **LONG)
    for seed in range(4):
        stopped = esker.resume(
            tmp_path / f"{seed}", env=Noisy, generations=70, quiet=True, on_generation=lambda row: "enough"
        )
        rule = esker.train(
            Noisy, run_dir=str(tmp_path / f"rule{seed}"), generations=61, seed=seed, on_generation=at_60, **LONG
        )
        assert stopped.folder.best_file.read_text() == rule.folder.best_file.read_text()
        assert wanted(stopped.folder, "best", 61)[1] == []


def at_60(row: dict[str, Any]) -> bool:
    return bool(row["generation"] == 60)


def test_a_finished_run_that_is_resumed_with_nothing_to_do_keeps_its_choice(tmp_path: Path, monkeypatch: Any) -> None:
    run = esker.train(Hill, run_dir=str(tmp_path / "run"), generations=60, **LONG)
    final, best = final_of(run), run.folder.best_file.read_text()
    monkeypatch.setattr(EvolutionStrategy, "conclude", None)
    again = run.resume(quiet=True)
    assert (final_of(again), again.folder.best_file.read_text()) == (final, best)
    assert again.folder.status() == "finished: 60 generations done"


def test_an_episode_that_fails_for_every_candidate_does_not_decide() -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    state.progress.episodes = 100_000

    def play(snapshot: Snapshot, episodes: int, first: int) -> list[float]:
        return [math.nan, float(snapshot.generation)] * (episodes // 2)

    row = conclude(state, state, [-900.0] * 5, play)
    assert (row["best_generation"], row["candidates"]) == (5, {"4": 4.0, "5": 5.0})


def test_a_centre_of_which_few_episodes_failed_counts_by_the_others() -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    assert conclude(state, state, [math.nan, 30.0, 60.0], lambda *_: [1.0])["center_return"] == 45.0
    assert conclude(state, state, [math.nan, math.nan, 60.0], lambda *_: [1.0])["center_return"] is None
    progress, config = Progress(), StopOptions(goal=40.0, patience=2)
    for generation, returns in enumerate([[math.nan, 40.0, 60.0], [50.0, math.nan, 40.0]]):
        progress.count_center(config, generation, returns)
    assert progress.goal_streak == 2
    progress.count_center(config, 2, [math.nan, math.nan, 90.0])
    assert progress.goal_streak == 0


def test_a_last_centre_that_failed_is_no_number_in_the_final_file() -> None:
    state: Any = Told([0.0, 0.0, 0.0, 20.0, 40.0])
    assert conclude(state, state, [math.nan] * 5, lambda *_: [1.0])["center_return"] is None


def test_a_copy_for_another_node_has_the_snapshots_that_compete_at_the_end(tmp_path: Path) -> None:
    run = esker.train(
        Noisy, run_dir=str(tmp_path / "run"), generations=58, on_generation=lambda row: row["generation"] == 56, **LONG
    )
    values = json.loads((run.path / "checkpoints" / run.folder.latest_file.read_text().strip() / "state.json").read_text())
    compete = {values["best_generation"], values["steady_generation"]}
    assert len(compete) == 2
    copies.write(tmp_path / "copy", copies.essentials(run.folder))
    assert compete <= set(checkpoints.generations(tmp_path / "copy" / "checkpoints"))
    here, there = (esker.resume(path, env=Noisy, quiet=True, trust=True) for path in (run.path, tmp_path / "copy"))
    assert final_of(here) == final_of(there)


def test_an_episode_that_fails_at_the_end_is_named_by_its_own_seed(tmp_path: Path, monkeypatch: Any) -> None:
    failed: list[int] = []

    class Breaking(Hill):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            if ending and not failed and len(ending) > 5:  # the sixth of the best's: beyond the run's center_episodes
                failed.append(seed or 0)
                raise ValueError("broken")
            ending.extend([1] * bool(ending))
            return super().reset(seed=seed, options=options)

    ending: list[int] = []
    play = EvolutionStrategy._play
    monkeypatch.setattr(EvolutionStrategy, "_play", lambda *given: ending.append(1) or play(*given))
    with pytest.raises(esker.RunError, match="the centre, episode 5, seed") as caught:
        esker.train(Breaking, run_dir=str(tmp_path / "run"), generations=2, **LONG)
    assert f"seed {failed[0]}: ValueError: broken" in str(caught.value)
