"""Training that makes no progress, detected from the journal alone, and what to try."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

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
    "{raise_scale}shape the reward, or stop here (--goal) if no better score is possible"
)
STILL = (
    "the centre has not moved for {count:,} generations: no individual is good enough to move it ({score:,.1f} at best); "
    "look at {movers}"
)
FLAT = (
    "the update has been 0 for {count:,} generations although returns differ ({low:,.1f} to {score:,.1f}): members have the "
    "same fitness; {raise_scale}{or_change}"
)
UNBEATEN = "no member has beaten the centre for {count:,} generations: {lower_scale}raise {crowd}"
NO_BETTER = (
    "the centre is no better than at the start after {count:,} generations ({score:,.1f} then, {now:,.1f} now): "
    "try {tries}`esker sweep`"
)


@dataclass(frozen=True)
class Advice:
    """The options that a run has for what a warning names, with the values that it began with."""

    scale: str = "--sigma"
    sigma: float | None = None
    lr: float | None = None
    crowd: tuple[str, ...] = ("--population", "--episodes-per-member")
    movers: tuple[str, ...] = ("--mean-update-param", "--var-init", "--lr")  # what decides how far the centre moves
    bonus: tuple[str, ...] = ("--survival-bonus",)

    @classmethod
    def of(cls, config: Any) -> Advice:
        """What a configuration allows to try. The published learning rate of SNES and the CMA kind is part of them."""

        def had(flags: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(flag for flag in flags if hasattr(config, flag[2:].replace("-", "_")))

        scale = "--var-init" if hasattr(config, "var_init") else "--sigma"
        sigma = getattr(config, scale[2:].replace("-", "_"), None)
        strategies = {getattr(config, "algo", ""), getattr(config, "strategy", "")}
        steps = sigma and scale == "--sigma" and not strategies & {"snes", "sep-cma", "cma"}
        lr = getattr(config, "lr", None) if steps else None
        return cls(scale if sigma else "", sigma, lr, had(cls.crowd), had(cls.movers), had(cls.bonus))

    def words(self) -> dict[str, str]:
        """What goes into the sentences' places."""
        larger, smaller = (_say(self.sigma and self.sigma * by) for by in (STEP, 1 / STEP))
        faster = f" and --lr{_say(self.lr * STEP)}" if self.lr else ""
        another = [f"another {self.scale}{larger}{faster}"] if self.scale else []
        tries = another + [f"a larger {flag}" for flag in self.crowd[:1]]
        return {
            "raise_scale": f"raise {self.scale}{larger}, " if self.scale else "",
            "lower_scale": f"lower {self.scale}{smaller}, or " if self.scale else "",
            "tries": ", ".join([*tries, ""]) + "or " if tries else "",
            "crowd": " or ".join(self.crowd) or "the number of episodes",
            "movers": " or ".join(self.movers) or "the reward",
            "or_change": f"look at {self.bonus[0]}, or take another preset" if self.bonus else "or change the reward",
        }


def _say(value: float | None) -> str:
    """A number to try, where there is one to start from."""
    return f" ({value:.2g}, say)" if value else ""


@dataclass
class StallDetector:
    """Sees every row once, in order; returns a warning when a stall has lasted long enough.

    `after(rows)` has seen a run's earlier rows.
    """

    advice: Advice = field(default_factory=Advice)
    alike: int = 0
    still: int = 0
    unbeaten: int = 0
    first: list[float] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)
    start: int | None = None  # of a run with several starts

    @classmethod
    def after(cls, rows: Iterable[Row], config: Any = None) -> StallDetector:
        """A detector that has seen some rows, of a run with this configuration."""
        detector = cls() if config is None else cls(Advice.of(config))
        for row in rows:
            detector.see(row)
        return detector

    def see(self, row: Row) -> str | None:
        """The warning about this generation, if any."""
        if row.get("start") != self.start:  # a new start owes nothing to the one before
            vars(self).update(vars(StallDetector(self.advice, start=row.get("start"))))
        self._remember(row)
        low, high = row.get("return_min"), row.get("return_max")
        several = row.get("members", 2) > 1  # one alone is always like itself
        self.alike = self.alike + 1 if several and low is not None and low == high else 0
        crowd = row.get("members", 0) >= FEWEST_MEMBERS
        self.unbeaten = self.unbeaten + 1 if row.get("center_rank") == 1 and crowd and not self.alike else 0
        moved = row.get("step_mean", row.get("update_ratio"))
        self.still = self.still + 1 if moved == 0 and not self.alike else 0
        if self.still in (STILL_AFTER, STILL_AFTER * AGAIN):
            return _still(row, self.still, self.advice)
        if _due(self.alike):
            return ALIKE.format(score=high, count=self.alike, **self.advice.words())
        if _due(self.unbeaten):
            return UNBEATEN.format(count=self.unbeaten, **self.advice.words())
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
        words = self.advice.words()
        return NO_BETTER.format(count=count, score=before, now=now, **words) if now <= before else None


def stalls(rows: Iterable[Row], config: Any = None) -> list[tuple[int, str]]:
    """All warnings about a journal, with the generations at which they would have been shown."""
    detector = StallDetector.after((), config)
    return [(row["generation"], text) for row in rows if (text := detector.see(row))]


def _still(row: Row, count: int, advice: Advice) -> str:
    """Why a centre stays where it is: its individuals are too poor for it, or their fitness does not tell them apart."""
    low, high = (math.nan if (value := row.get(name)) is None else value for name in ("return_min", "return_max"))
    flat = row.get("gradient_norm") == 0
    return (FLAT if flat else STILL).format(count=count, low=low, score=high, **advice.words())


def _due(count: int) -> bool:
    """At 20, 200, 2,000, … generations."""
    while count and count % AGAIN == 0 and count > PATIENCE:
        count //= AGAIN
    return count == PATIENCE
