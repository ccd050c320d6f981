"""Training that makes no progress, detected from the journal alone, and what to try."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from esker.algorithms.observer import Row

PATIENCE = 20  # generations of the same kind before a warning
STILL_AFTER = 5  # generations without a move of the centre
AGAIN = 10  # warned again when it has lasted this many times longer
FEWEST_MEMBERS = 10  # with fewer, a centre that no member beats is ordinary
EDGE = 10  # generations at the start and at the end whose means are compared
STEP = 3  # times larger or smaller is what a hint names
LOOKS = (50, 200, 800)  # generations after which the end is compared with the start

ALIKE = (
    "all members have had the same score ({score:,.1f}) for {count:,} generations, so there is no gradient: "
    "raise --sigma{larger}, shape the reward, or stop here (--goal) if no better score is possible"
)
STILL = (
    "the centre has not moved for {count:,} generations: no individual is good enough to move it ({score:,.1f} at best); "
    "look at --mean-update-param or --lr"
)
FLAT = (
    "the update has been 0 for {count:,} generations although returns differ ({low:,.1f} to {score:,.1f}): members have the "
    "same fitness; look at --survival-bonus, take another preset, or raise --sigma{larger}"
)
UNBEATEN = (
    "no member has beaten the centre for {count:,} generations: "
    "lower --sigma{smaller}, or raise --population or --episodes-per-member"
)
NO_BETTER = (
    "the centre is no better than at the start after {count:,} generations ({score:,.1f} then, {now:,.1f} now): "
    "try another --sigma{larger} and --lr{faster}, a larger --population, or `esker sweep`"
)


@dataclass
class StallDetector:
    """Sees every row once, in order; returns a warning when a stall has lasted long enough.

    `after(rows)` has seen a run's earlier rows.
    """

    alike: int = 0
    still: int = 0
    unbeaten: int = 0
    first: list[float] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)
    start: int | None = None  # of a run with several starts

    @classmethod
    def after(cls, rows: Iterable[Row]) -> StallDetector:
        """A detector that has seen some rows."""
        detector = cls()
        for row in rows:
            detector.see(row)
        return detector

    def see(self, row: Row) -> str | None:
        """The warning about this generation, if any."""
        if row.get("start") != self.start:  # a new start owes nothing to the one before
            vars(self).update(vars(StallDetector(start=row.get("start"))))
        self._remember(row)
        low, high = row.get("return_min"), row.get("return_max")
        several = row.get("members", 2) > 1  # one alone is always like itself
        self.alike = self.alike + 1 if several and low is not None and low == high else 0
        crowd = row.get("members", 0) >= FEWEST_MEMBERS
        self.unbeaten = self.unbeaten + 1 if row.get("center_rank") == 1 and crowd and not self.alike else 0
        moved = row.get("step_mean", row.get("update_ratio"))
        self.still = self.still + 1 if moved == 0 and not self.alike else 0
        if self.still in (STILL_AFTER, STILL_AFTER * AGAIN):
            return _still(row, self.still)
        if _due(self.alike):
            return ALIKE.format(score=high, count=self.alike, **_values(row))
        if _due(self.unbeaten):
            return UNBEATEN.format(count=self.unbeaten, **_values(row))
        return self._compare(row)

    def _remember(self, row: Row) -> None:
        value = row.get("center_return")
        if value is None:
            return
        if len(self.first) < EDGE:
            self.first.append(value)
        self.recent = [*self.recent[1 - EDGE :], value]

    def _compare(self, row: Row) -> str | None:
        count = row.get("generation", 0) + 1
        if count not in LOOKS or len(self.recent) < EDGE or self.alike >= PATIENCE:
            return None
        before, now = sum(self.first) / EDGE, sum(self.recent) / EDGE
        return NO_BETTER.format(count=count, score=before, now=now, **_values(row)) if now <= before else None


def stalls(rows: Iterable[Row]) -> list[tuple[int, str]]:
    """All warnings about a journal, with the generations at which they would have been shown."""
    detector = StallDetector()
    return [(row["generation"], text) for row in rows if (text := detector.see(row))]


def _still(row: Row, count: int) -> str:
    """Why a centre stays where it is: its individuals are too poor for it, or their fitness does not tell them apart."""
    low, high = (math.nan if (value := row.get(name)) is None else value for name in ("return_min", "return_max"))
    flat = row.get("gradient_norm") == 0
    return (FLAT if flat else STILL).format(count=count, low=low, score=high, **_values(row))


def _values(row: Row) -> dict[str, str]:
    """Numbers to try, in the sentences' places for them; empty where a row has none to start from."""
    sigma, lr = row.get("sigma"), row.get("lr")
    named = {"larger": sigma and sigma * STEP, "smaller": sigma and sigma / STEP, "faster": lr and lr * STEP}
    return {name: f" ({value:.2g}, say)" if value else "" for name, value in named.items()}


def _due(count: int) -> bool:
    """At 20, 200, 2,000, … generations."""
    while count and count % AGAIN == 0 and count > PATIENCE:
        count //= AGAIN
    return count == PATIENCE
