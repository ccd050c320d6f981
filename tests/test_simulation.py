"""The cluster's protocol on a simulated cluster: hundreds of schedules of faults, and mistakes that they must find."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "simulation"))

from sim_mutants import MUTANTS
from sim_schedule import installed, reproduce, simulate

SCHEDULES = 200
FOUND = (5243, 7348)  # beyond those: what longer searches found wrong once
UNTIL_FOUND = 100  # schedules within which a mistake must be found


@pytest.fixture(scope="module", autouse=True)
def simulated() -> Iterator[None]:
    with installed():
        yield


def test_an_undisturbed_schedule_is_the_undisturbed_run() -> None:
    assert simulate(0).problems == []


def test_a_seed_gives_the_same_schedule_again() -> None:
    first, second = simulate(6), simulate(6)
    assert len(first.faults) > 0
    assert (first.trace, first.steps) == (second.trace, second.steps)


def test_no_schedule_loses_a_commit_or_a_bit() -> None:
    wrong = [reproduce(outcome) for seed in (*range(SCHEDULES), *FOUND) if (outcome := simulate(seed)).problems]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("mistake", MUTANTS)
def test_a_mistake_is_found(mistake: str) -> None:
    patch, first = MUTANTS[mistake]
    with patch():
        assert any(simulate(seed).problems for seed in range(first, first + UNTIL_FOUND)), f"{mistake}: not found"
