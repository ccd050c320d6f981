"""The plan of a generation: the same members, whatever the order in which results arrive."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.engines.openplan import OpenPlan
from esker.engines.plan import Plan
from esker.tasks.task import Result


def length_of(item: int) -> int:
    return 1 + (item * 7919) % 23


def run(plan: Plan, order: random.Random, hold: int) -> Plan:
    """Evaluate a plan with up to `hold` items under way, finishing them in random order and losing some workers."""
    under_way: list[int] = []
    while plan.complete is None:
        under_way += plan.take(hold - len(under_way))
        item = under_way.pop(order.randrange(len(under_way)))
        if order.random() < 0.1:
            plan.put_back([item])
        else:
            plan.add([Result(item, 0.0, 0.0, length_of(item))])
    return plan


def shortest_prefix(members: int, episodes: int, center: int, unit: int, min_steps: int) -> int:
    """The definition, spelled out."""
    count, steps = 0, 0
    while count < members or steps < min_steps:
        for item in range(center + count * episodes, center + (count + unit) * episodes):
            steps += length_of(item)
        count += unit
    return count


@given(
    members=st.integers(1, 12),
    episodes=st.integers(1, 3),
    center=st.integers(0, 3),
    unit=st.sampled_from([1, 2]),
    min_steps=st.integers(0, 600),
    hold=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_a_generation_is_the_shortest_prefix_that_meets_both_minima(
    members: int, episodes: int, center: int, unit: int, min_steps: int, hold: int, seed: int
) -> None:
    plan = Plan(members * unit, episodes=episodes, center=center, unit=unit, min_steps=min_steps or None)
    run(plan, random.Random(seed), hold)
    assert plan.complete == shortest_prefix(members * unit, episodes, center, unit, min_steps)


def test_without_a_step_minimum_nothing_beyond_the_members_is_handed_out() -> None:
    plan = Plan(4, episodes=2, center=3)
    assert plan.take(100) == list(range(3 + 8))


def test_a_duplicate_result_is_ignored_and_its_steps_counted_as_dropped() -> None:
    plan = Plan(1)
    plan.add([Result(0, 1.0, 1.0, 5), Result(0, 1.0, 1.0, 5)])
    assert (plan.complete, plan.dropped_steps) == (1, 5)


def test_items_put_back_are_handed_out_before_new_ones() -> None:
    plan = Plan(10)
    plan.take(5)
    plan.put_back([3, 1])
    assert plan.take(3) == [1, 3, 5]


def test_a_refused_result_raises() -> None:
    def refuse(result: Result) -> None:
        raise RuntimeError(result.error)

    plan = Plan(1, refuse=refuse)
    with pytest.raises(RuntimeError, match="broken"):
        plan.add([Result(0, 0.0, 0.0, 1, error="broken")])


def test_a_node_sends_results_again_that_were_lost_on_the_way() -> None:
    plan = OpenPlan()
    plan.offer([3, 4])
    plan.add([Result(item, float(item), 0.0, 1) for item in plan.take(2)])
    lost = plan.collect(0, 0.0)
    plan.offer([4, 5])  # the coordinator heard nothing of 4
    assert plan.take(2) == [5]
    plan.add([Result(5, 5.0, 0.0, 1)])
    assert [result.item for result in lost] == [3, 4]
    assert [result.item for result in plan.collect(0, 0.0)] == [4, 5]
