"""Slots: every step is a step of some member, terminal rewards count, and no two episodes blur."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from esker.engines.engine import InlineEngine
from esker.engines.local import LocalEngine
from esker.engines.messages import Items
from esker.engines.plan import Plan
from esker.noise.counter import CounterNoise
from esker.noise.population import Population
from esker.policies.heads import head_for
from esker.policies.mlp import MLP
from esker.tasks.episodes import Episodes
from esker.tasks.task import Job, Result
from esker.worlds.environments import Environment


def job_of(task: Episodes, generation: int, sigma: float, cap: int | None = None) -> Job:
    center = np.zeros(task.network.dimension, np.float32)
    return Job(Population(center, sigma, generation, task.antithetic, None, range(0)), None, cap)


def evaluate(
    task: Episodes, members: int, cap: int | None = None, generation: int = 0, sigma: float = 0.1
) -> dict[int, Result]:
    engine = InlineEngine(task, None)
    plan = Plan(members, episodes=task.episodes_per_member, center=task.center_episodes)
    engine.evaluate(job_of(task, generation, sigma, cap), plan)
    engine.close()
    return plan.results


def task_for(name: str, slots: int = 3, kwargs: dict[str, Any] | None = None, **options: Any) -> Episodes:
    environment = Environment(f"worlds:{name}", kwargs=kwargs or {})
    env = environment.make()
    head = head_for(env.action_space, options.pop("mode", "direct"))
    assert env.observation_space.shape is not None
    return Episodes(environment, MLP((*env.observation_space.shape, 4, head.outputs)), head, seed=1, slots=slots, **options)


def test_terminal_rewards_count() -> None:
    results = evaluate(task_for("Corridor"), 10)
    assert {result.total for result in results.values()} == {6 * 1.0 + 10.0}


def test_no_step_is_taken_past_an_episodes_end_or_for_an_empty_row(tmp_path: Path) -> None:
    log = tmp_path / "steps"
    results = evaluate(task_for("Corridor", kwargs={"log": str(log)}), 11)
    assert log.stat().st_size == sum(result.length for result in results.values()) == 12 * 7


def test_the_episode_cap_ends_episodes_of_members_and_not_of_the_centre() -> None:
    task = task_for("Corridor", slots=2, center_episodes=3)
    lengths = [result.length for _, result in sorted(evaluate(task, 5, cap=4).items())]
    assert lengths == [7, 7, 7, 4, 4, 4, 4, 4]


@pytest.mark.parametrize("limit", [3, 7, 500])
def test_the_time_limit_of_an_environment_ends_episodes_as_gymnasium_does(limit: int) -> None:
    task = task_for("Corridor", kwargs={"length": 50})
    limited = replace(task, environment=replace(task.environment, max_episode_steps=limit))
    env = limited.environment.make()
    env.reset(seed=limited.reset_seed(0, 1))
    over, length, total = False, 0, 0.0
    while not over:
        _, reward, terminated, truncated, _ = env.step(0)
        over, length, total = terminated or truncated, length + 1, total + float(reward)
    assert {(result.length, result.total) for result in evaluate(limited, 5).values()} == {(length, total)}


def test_statistics_are_the_sums_of_the_observations_acted_on() -> None:
    """In the corridor the observation is noise + step number; the terminal one is never acted on."""
    task = task_for("Corridor")
    for item, result in evaluate(task, 4).items():
        if item == 0:
            assert result.statistics is None  # the centre's episode
            continue
        env = task.environment.make()
        first = env.reset(seed=task.reset_seed(0, item))[0]
        acted_on = first[None] + np.arange(7)[:, None]
        assert result.statistics is not None
        np.testing.assert_allclose(result.statistics[0], acted_on.sum(0), rtol=1e-12)
        np.testing.assert_allclose(result.statistics[1], (acted_on**2).sum(0), rtol=1e-12)


def test_a_share_of_episodes_feeds_the_statistics_by_address() -> None:
    task = task_for("Corridor", statistics_share=0.3)
    chosen = {item for item, result in evaluate(task, 200).items() if result.statistics is not None}
    assert chosen == {item for item in range(201) if task.counts_observations(0, item)}
    assert 30 < len(chosen) < 90


@pytest.mark.parametrize(("common", "equal"), [(True, True), (False, False)])
def test_a_pair_shares_its_episodes_when_seeds_are_common(common: bool, equal: bool) -> None:
    task = task_for("Corridor", common_seeds=common)
    assert (task.reset_seed(0, 1) == task.reset_seed(0, 2)) is equal


def test_every_generation_and_episode_has_its_own_seed() -> None:
    task = task_for("Corridor", episodes_per_member=2, center_episodes=2)
    seeds = [task.reset_seed(generation, item) for generation in (0, 1) for item in (0, 1, 2, 3, 6, 7)]
    assert len(set(seeds)) == len(seeds)


def test_a_slot_acts_with_its_members_parameters() -> None:
    """A linear policy on one observation: the return tells which parameters acted."""
    environment = Environment("worlds:Continuous")
    head = head_for(environment.make().action_space)
    task = Episodes(environment, MLP((2, 1)), head, seed=3, slots=2, antithetic=False)
    results = evaluate(task, 6, sigma=0.2)
    population = Population(np.zeros(3, np.float32), 0.2, 0, False, CounterNoise(3, 3), range(6))
    for member, (w_target, w_one, bias) in enumerate(population.parameters().numpy().tolist()):
        target = environment.make().reset(seed=task.reset_seed(0, member + 1))[0][0]
        action = np.clip(w_target * target + w_one + bias, -1, 1)
        assert results[member + 1].total == pytest.approx(-5 * (action - target) ** 2, abs=1e-5)


def test_action_noise_moves_members_by_address_and_never_the_center() -> None:
    quiet, noisy = task_for("Continuous"), task_for("Continuous", action_noise=0.3)
    still, moved, again = (
        evaluate(quiet, 4),
        evaluate(noisy, 4),
        evaluate(task_for("Continuous", slots=1, action_noise=0.3), 4),
    )
    assert moved[0].total == still[0].total
    assert all(moved[item].total != still[item].total for item in range(1, 5))
    assert [moved[item].total for item in range(5)] == [again[item].total for item in range(5)]


def test_sign_fitness_sums_the_signs_of_rewards() -> None:
    result = evaluate(task_for("Continuous", sign_fitness=True), 1)[1]
    assert (result.fitness, result.total < 0) == (-5.0, True)


@pytest.mark.parametrize("observation", ["box", "discrete", "dict", "tuple"])
@pytest.mark.parametrize("action", ["discrete", "multidiscrete", "multibinary", "box", "matrix"])
def test_every_kind_of_space_is_understood(observation: str, action: str) -> None:
    results = evaluate(task_for("Spaces", kwargs={"observation": observation, "action": action}), 4)
    assert {result.total for result in results.values()} == {4.0}


@pytest.mark.parametrize("mode", ["tanh", "binned"])
def test_squashed_and_binned_actions_belong_to_the_space(mode: str) -> None:
    results = evaluate(task_for("Continuous", mode=mode), 4, sigma=5.0)
    assert all(result.error is None for result in results.values())


def test_fresh_environments_make_a_fickle_environment_exact() -> None:
    def totals(slots: int, fresh: bool) -> list[Any]:
        task = task_for("Fickle", slots=slots, fresh_environments=fresh)
        return [evaluate(task, 6)[item].statistics[0].tolist() for item in range(1, 7)]  # type: ignore[index]

    assert totals(1, fresh=True) == totals(3, fresh=True)
    assert totals(1, fresh=False) != totals(3, fresh=False)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise", "RuntimeError: the robot fell over"),
        ("reset", "RuntimeError: cannot reset"),
        ("nan", "the return of the episode is nan"),
        ("nan-observation", "the return of the episode is nan"),
        ("shape", "observation has shape (1,); expected (3,)"),
    ],
)
def test_a_fault_is_the_result_of_the_episode_it_happened_in(fault: str, message: str) -> None:
    task = task_for("Faulty", kwargs={"fault": fault, "of": 2})
    results = evaluate(task, 12)
    failed = {item for item, result in results.items() if result.error is not None}
    assert failed == {item for item in range(13) if task.reset_seed(0, item) % 2 == 0}
    assert failed
    assert all(message in str(results[item].error) for item in failed)
    assert {results[item].total for item in set(results) - failed} == {16.0}


def cheetah() -> gym.Env:
    return gym.make("HalfCheetah-v5", disable_env_checker=True)


def test_gymnasiums_mujoco_worlds_of_a_worker_read_one_model_and_play_as_they_would_alone():
    environment = Environment("HalfCheetah-v5")
    first = environment.make()
    beside, alone = environment.make_beside(first), environment.make()
    assert beside.unwrapped.model is first.unwrapped.model
    assert beside.unwrapped.data is not first.unwrapped.data
    actions = np.random.default_rng(0).uniform(-1, 1, (50, 6))
    assert np.array_equal(beside.reset(seed=3)[0], alone.reset(seed=3)[0])
    first.reset(seed=4)
    for action in actions:
        first.step(-action)  # whatever the other one does
        (one, gained, *_), (other, as_much, *_) = beside.step(action), alone.step(action)
        assert np.array_equal(one, other)
        assert gained == as_much


@pytest.mark.parametrize(
    "environment",
    [
        Environment("tests:cheetah", factory=cheetah),
        Environment("HalfCheetah-v5", wrappers=("gymnasium.wrappers:RecordEpisodeStatistics",)),
        Environment("HalfCheetah-v5", kwargs={"render_mode": "rgb_array"}),
    ],
)
def test_what_may_change_its_model_or_show_it_keeps_its_own(environment: Environment):
    first = environment.make()
    assert environment.make_beside(first).unwrapped.model is not first.unwrapped.model


def test_episodes_of_one_length_are_shared_out_evenly_at_once(monkeypatch: pytest.MonkeyPatch):
    task = task_for("Corridor", slots=2)
    granted: list[int] = []
    with contextlib.closing(LocalEngine(task, 2)) as engine:
        send = engine._send

        def note(worker: Any, message: Any) -> None:
            if isinstance(message, Items) and message.items:
                granted.append(len(message.items))
            send(worker, message)

        monkeypatch.setattr(engine, "_send", note)
        for generation in range(2):
            granted.clear()
            engine.evaluate(job_of(task, generation, 0.1), Plan(101, center=1))
    assert granted == [51, 51]
