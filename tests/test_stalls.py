"""Stalls: warnings about training that goes nowhere, and none about training that works."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from esker.algorithms.registry import find
from esker.algorithms.stalls import StallDetector, stalls
from esker.config.evolution import EvolutionConfig
from esker.config.options import ESConfig
from esker.config.strategies import own_defaults
from esker.logs.report.data import _options


def row(generation: int, low: float, high: float, center: float, rank: int = 5, members: int = 20) -> dict[str, Any]:
    values = {"return_min": low, "return_max": high, "center_return": center, "center_rank": rank, "members": members}
    return {"generation": generation, **values}


def test_members_that_score_the_same_are_reported_at_20_and_200_generations() -> None:
    said = stalls(row(g, -200, -200, -200) for g in range(450))
    assert [generation for generation, _ in said] == [19, 199]
    assert "same score (-200.0) for 20 generations" in said[0][1]
    assert "raise --sigma" in said[0][1]


def test_a_generation_that_differs_starts_the_count_again() -> None:
    said = stalls(row(g, -200, -199 if g == 15 else -200, float(g)) for g in range(36))
    assert [generation for generation, _ in said] == [35]


def test_a_centre_that_no_member_beats_is_reported() -> None:
    said = stalls(row(g, 0, 1 + g, float(g), rank=1) for g in range(30))
    assert [(generation, text.split(":")[0]) for generation, text in said] == [
        (19, "no member has beaten the centre for 20 generations")
    ]


def test_a_small_population_that_does_not_beat_the_centre_is_ordinary() -> None:
    assert stalls(row(g, 0, 1 + g, float(g), rank=1, members=4) for g in range(30)) == []


def test_a_centre_no_better_than_at_the_start_is_reported_after_50_generations() -> None:
    said = stalls(row(g, 0, 9, 5.0 - g / 100) for g in range(60))
    assert [(generation, text.split(" (")[0]) for generation, text in said] == [
        (49, "the centre is no better than at the start after 50 generations")
    ]


def test_nothing_is_reported_about_training_that_learns() -> None:
    assert stalls(row(g, g - 5, g + 5, float(g)) for g in range(1000)) == []


def test_rows_without_members_returns_are_passed_over() -> None:
    detector = StallDetector()
    assert [detector.see({"generation": g, "center_return": None}) for g in range(60)] == [None] * 60


def test_a_centre_that_does_not_move_is_reported_after_five_generations() -> None:
    rows = [row(g, 0, 9, 5.0) | {"step_mean": 0.0 if g > 1 else 0.5} for g in range(10)]
    said = stalls(rows)
    assert [(generation, text.split(":")[0]) for generation, text in said] == [
        (6, "the centre has not moved for 5 generations")
    ]
    assert "--mean-update-param" in said[0][1]
    assert stalls([one | {"step_mean": 0.1} for one in rows]) == []


def test_returns_that_differ_without_a_gradient_are_reported_as_equal_fitness() -> None:
    rows = [row(g, 8, 500, 9.0) | {"update_ratio": 0.0, "gradient_norm": 0.0} for g in range(10)]
    [(generation, text)] = stalls(rows)
    assert generation == 4
    assert "although returns differ (8.0 to 500.0)" in text
    assert "--survival-bonus" in text


def test_hints_name_numbers_where_the_configuration_has_some() -> None:
    config = ESConfig(sigma=0.02, lr=0.01)
    alike = stalls((row(g, -200, -200, -200) for g in range(20)), config)[0][1]
    unbeaten = stalls((row(g, 0, 1 + g, float(g), rank=1) for g in range(20)), config)[0][1]
    no_better = stalls((row(g, 0, 9, 5.0 - g / 100) for g in range(50)), config)[0][1]
    assert "raise --sigma (0.06, say), shape the reward" in alike
    assert "lower --sigma (0.0067, say), or raise" in unbeaten
    assert "try another --sigma (0.06, say) and --lr (0.03, say), a larger" in no_better


@pytest.mark.parametrize("name", ["es", "pgpe", "snes", "sep-cma", "cma", "td3", "cem-rl", "one-plus-one"])
def test_hints_name_only_options_that_the_algorithm_has(name: str) -> None:
    kind = find(name).config
    options = {field.name for field in fields(kind)}
    makers = (
        lambda g: row(g, 1, 1, 1),
        lambda g: row(g, 0, 1 + g, g, rank=1),
        lambda g: row(g, 0, 9, 5 - g / 100),
        lambda g: row(g, 0, 9, g) | {"step_mean": 0.0},
        lambda g: row(g, 0, 9, g) | {"update_ratio": 0.0, "gradient_norm": 0.0},
    )
    for make in makers:
        [(_, text), *_] = stalls((make(g) for g in range(50)), kind())
        named = {flag.replace("-", "_") for flag in re.findall(r"--([a-z-]+)", text)}
        assert named <= options, text
        assert "--lr (3, say)" not in text  # of SNES and the CMA kind it is part of the method
        assert "try or" not in text


@pytest.mark.parametrize("strategy", ["openai-es", "snes", "cma"])
def test_hints_of_an_evolution_fit_its_strategy_and_a_reward_without_steps(strategy: str) -> None:
    config = EvolutionConfig(strategy=strategy, **own_defaults(strategy))
    no_better = stalls((row(g, 0, 9, 5 - g / 100) for g in range(50)), config)[0][1]
    assert ("--lr" in no_better) == (strategy == "openai-es")
    flat = stalls((row(g, 8, 500, 9.0) | {"update_ratio": 0.0, "gradient_norm": 0.0} for g in range(10)), config)[0][1]
    assert "survival" not in flat
    assert "preset" not in flat
    assert flat.endswith("or change the reward")


def test_hints_in_a_report_know_options_that_a_run_left_at_none() -> None:
    stored = {"algo": "snes", "sigma": 0.1, "lr": 1.0}  # a file holds no None, which its population is
    text = stalls((row(g, 0, 9, 5 - g / 100) for g in range(50)), _options(stored))[0][1]
    assert "a larger --population" in text
    assert "--lr" not in text


def test_one_member_alone_is_not_a_population_that_scores_alike() -> None:
    rows = [row(g, g % 3, g % 3, 5.0) | {"members": 1, "step_mean": 0.0} for g in range(30)]
    assert [text.split(":")[0] for _, text in stalls(rows)] == ["the centre has not moved for 5 generations"]
