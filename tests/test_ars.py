"""Augmented Random Search as a setting, fitness without survival bonus, sigma by the centre's rank."""

import math

import numpy as np
import pytest

import esker
from esker.strategies.openai_es import OpenAIES


def test_top_directions_with_normalized_shaping_is_the_update_of_the_ars_paper():
    sigma, step, best = 0.05, 0.3, 3
    es = OpenAIES(
        np.zeros(7),
        population=12,
        sigma=sigma,
        lr=2 * sigma * step,
        optimizer="sgd",
        shaping="normalized",
        top_directions=best,
    )
    fitness = np.random.default_rng(0).normal(size=12) * 5
    directions = [es.noise.direction(0, k) for k in range(6)]
    es.tell(fitness)

    plus, minus = fitness[0::2], fitness[1::2]
    order = np.argsort(-np.maximum(plus, minus))[:best]
    spread = np.concatenate([plus[order], minus[order]]).std()
    expected = step / (best * spread) * sum((plus[k] - minus[k]) * directions[k] for k in order)
    np.testing.assert_allclose(es.center.numpy(), expected, rtol=2e-6, atol=1e-7)


def test_all_directions_selected_equals_no_selection():
    centers = []
    for top in (None, 5):
        es = OpenAIES(np.ones(4), population=10, top_directions=top)
        es.tell(np.arange(10.0))
        centers.append(es.center.numpy())
    assert (centers[0] == centers[1]).all()


def test_nan_in_an_unselected_direction_is_still_refused():
    es = OpenAIES(np.ones(4), population=4, top_directions=1)
    with pytest.raises(ValueError, match=r"fitness\[2\] is nan"):
        es.tell([5.0, 4.0, math.nan, 1.0])


def test_more_top_directions_than_pairs_is_refused_with_both_numbers():
    with pytest.raises(esker.UsageError, match="top_directions is 9; a population of 16 has 8"):
        esker.train("CartPole-v1", population=16, top_directions=9)


def test_survival_bonus_moves_fitness_and_leaves_returns(tmp_path):
    """CartPole pays 1 a step: without the bonus every member is worth 0, so nothing moves and returns stay lengths."""
    options = {"preset": None, "noise": "counter", "workers": 0, "generations": 1, "population": 8}
    run = esker.train("CartPole-v1", survival_bonus=1.0, run_dir=str(tmp_path / "a"), **options)
    row = run.history[0]
    assert row["gradient_norm"] == 0.0
    assert row["return_mean"] == row["episode_length_mean"] > 8


@pytest.mark.parametrize(("name", "value"), [("reward_scale", 2.0), ("sigma_adaptation", 0.5), ("critics", 2)])
def test_options_that_are_gone_are_refused_with_what_to_do_instead(name, value):
    with pytest.raises(esker.UsageError, match=f"{name} is {value}, and this option was removed; "):
        esker.train("CartPole-v1", **{name: value})


def test_time_aware_adds_one_input_that_runs_from_0_to_1(tmp_path):
    run = esker.train(
        "CartPole-v1", preset=None, noise="counter", workers=0, generations=1, time_aware=True, run_dir=str(tmp_path / "a")
    )
    assert run.policy().network.inputs == 5


def test_time_aware_without_a_limit_names_the_option():
    from esker.worlds.environments import with_factory

    def unlimited():
        from gymnasium.envs.classic_control import CartPoleEnv

        return CartPoleEnv()

    with pytest.raises(esker.UsageError, match="--max-episode-steps"):
        with_factory(unlimited, time_aware=True).make()
    env = with_factory(unlimited, time_aware=True, max_episode_steps=10).make()
    env.reset(seed=0)
    assert env.step(0)[0][-1] == pytest.approx(0.1)
