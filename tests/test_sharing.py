"""How items are shared out among workers: at once, in number, or few at a time."""

import pytest

from esker.engines.sharing import RESERVE, Sharing, sharing_after


def test_episodes_of_one_length_are_shared_out_at_once():
    assert sharing_after([1000] * 5, 0.04).target(unfinished=80, workers=2, slots=15) == 40


def test_short_items_are_held_in_number():
    assert sharing_after([20, 30], 0.0005).target(unfinished=1000, workers=2, slots=56) == 56 + RESERVE


def test_long_items_of_unequal_length_are_held_few_at_a_time():
    sharing = sharing_after([20, 1000], 0.2)
    assert sharing.target(unfinished=462, workers=16, slots=6) == 6 + 2
    assert sharing.target(unfinished=32, workers=16, slots=6) == 1


def test_a_reserve_lasts_while_a_worker_asks():
    assert sharing_after([20, 30], 0.004).target(unfinished=1000, workers=2, slots=6) == 6 + 13


def test_short_items_keep_the_slots_full_even_where_few_are_left():
    assert sharing_after([50, 120], 0.003).target(unfinished=120, workers=2, slots=50) >= 50


def test_functions_share_half_of_what_is_unfinished():
    assert sharing_after([1, 1, 1], 9.0) == Sharing(0.5)


@pytest.mark.parametrize("lengths", [[], [3, 5], [1, 1], [7, 7]])
def test_a_worker_that_wants_items_gets_one_at_least(lengths):
    assert sharing_after(lengths, 1.0).target(unfinished=1, workers=64, slots=6) == 1


def _time_of(lengths, workers, slots, sharing):
    """Steps of the last worker to finish, where a worker steps its slots one after the other, as an engine grants items."""
    waiting, unfinished = list(lengths), len(lengths)
    held: list[list[int]] = [[] for _ in range(workers)]
    clocks = [0] * workers
    while unfinished:
        now = min(range(workers), key=lambda worker: clocks[worker] if held[worker] or waiting else float("inf"))
        lack = sharing.target(unfinished, workers, slots) - len(held[now])
        if len(held[now]) < slots and lack > 0:
            held[now] += [waiting.pop() for _ in range(min(lack, len(waiting)))]
        busy = held[now][:slots]
        clocks[now] += max(len(busy), 1)
        left = [length - 1 for length in busy]
        unfinished -= left.count(0)
        held[now] = [length for length in left if length] + held[now][slots:]
    return max(clocks)


def test_few_at_a_time_leaves_workers_less_idle_than_most_at_the_start():
    lengths = [1000 if number % 10 < 3 else 20 + 7 * number % 280 for number in range(462)]
    before, now = (_time_of(lengths, 16, 6, sharing) for sharing in (Sharing(), sharing_after(lengths, 0.1)))
    assert now < 0.95 * before
    assert now < 1.15 * sum(lengths) / 16
