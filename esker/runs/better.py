"""Whether another checkpoint is likely better than the one that was evaluated, according to the journal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Container, Sequence
from typing import Any

from esker.runs.evaluation import Evaluation

FEWEST_EPISODES = 5  # of an evaluation, below which nothing is concluded from it
HALF_EPISODES = 20  # of neighbouring centres by which a window is chosen, and as many by which it is judged
HALF_ROWS = 5  # at least, so that their spread is known
ERRORS = 3  # standard errors that the judged half must stay above
MARGIN = 0.03  # of the evaluated mean


def likely_better(
    rows: Sequence[dict[str, Any]], evaluation: Evaluation, episodes: int, available: Container[int]
) -> str | None:
    """A sentence that names a checkpoint which is likely better, or None.

    The centre's readings (means of `episodes` episodes) of neighbouring generations are taken together. A maximum over
    noisy windows picks a lucky one, so every second reading chooses the window and the others judge it: their mean less
    three standard errors must exceed the evaluated mean by one standard error and by 3%. Only `available` generations are
    named.
    """
    if evaluation.episodes < FEWEST_EPISODES:
        return None
    error = evaluation.std / math.sqrt(evaluation.episodes - 1)
    beaten = evaluation.mean + max(error, MARGIN * abs(evaluation.mean))
    half = max(HALF_ROWS, math.ceil(HALF_EPISODES / max(1, episodes)))
    chosen = _best_window([row for row in rows if _finite(row.get("center_return"))], half, evaluation.checkpoint, available)
    if chosen is None:
        return None
    generation, judges = chosen
    mean = statistics.fmean(judges)
    if mean - ERRORS * statistics.stdev(judges) / math.sqrt(half) <= beaten:
        return None
    seen = f"the centres around it had a mean of {mean:,.1f}, this one {evaluation.mean:,.1f}"
    return f"checkpoint {generation} is likely better ({seen}); compare with --checkpoint {generation}"


def _best_window(
    rows: Sequence[dict[str, Any]], half: int, evaluated: int, available: Container[int]
) -> tuple[int, list[float]] | None:
    """The middle of the window that is best by every second reading, and its other readings."""
    best, chosen = -math.inf, None
    for start in range(len(rows) - 2 * half + 1):
        window = rows[start : start + 2 * half]
        middle = (row["generation"] for row in window[half:] if row["generation"] in available)
        generation = next(middle, evaluated)
        mean = statistics.fmean(row["center_return"] for row in window[::2])
        if generation != evaluated and mean > best:
            best, chosen = mean, (generation, [float(row["center_return"]) for row in window[1::2]])
    return chosen


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
