"""What the addresses of many items say, at once: members, seeds and whose observations count. The numbers of `Episodes`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from esker.noise.address import UINT64, Purpose, keys
from esker.tasks.episodes import Episodes

Numbers = NDArray[np.int64]


def members_of(task: Episodes, items: Numbers) -> tuple[Numbers, Numbers]:
    """The member (-1: the centre) and the episode of each item."""
    members, episodes = np.divmod(items - task.center_episodes, task.episodes_per_member)
    center = items < task.center_episodes
    return np.where(center, -1, members), np.where(center, items, episodes)


def reset_seeds(task: Episodes, generation: int, members: Numbers, episodes: Numbers) -> Numbers:
    """The seeds of the items' episodes; the two members of a pair share it unless `common_seeds` is off."""
    who = members // 2 if task.common_seeds and task.antithetic else members
    of_center = keys(task.seed, task.center_purpose, generation, episodes)
    of_members = keys(task.seed, Purpose.EPISODE, generation, np.maximum(who, 0), episodes)
    return (np.where(members < 0, of_center, of_members) >> np.uint64(33)).astype(np.int64)


def counts_observations(task: Episodes, generation: int, members: Numbers, episodes: Numbers) -> NDArray[np.bool_]:
    """Whether the items' observations enter the statistics."""
    if not task.normalize:
        return np.zeros(len(members), dtype=np.bool_)
    if task.statistics_share == 1:
        return members >= 0
    drawn = keys(task.seed, Purpose.STATISTICS, generation, np.maximum(members, 0), episodes)
    return (members >= 0) & (drawn < np.uint64(math.ceil(task.statistics_share * UINT64)))
