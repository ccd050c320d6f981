"""A language model as a task: a generation's prompts, every member's completions, their mean score."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from esker.functions.lowrank.members import LowRankMembers
from esker.functions.lowrank.normals import uniforms
from esker.language.focus import CANDIDATES, Center, focused
from esker.language.generation import Decoding, Generator, Speedups
from esker.language.models import LanguageModel
from esker.language.prompts import Tokens
from esker.language.scoring import Score, Scored, member_scores, score_rows
from esker.noise.address import Purpose, generator


def _silent(text: str) -> None:
    """The notices of other processes are not shown."""


@dataclass(frozen=True)
class HeldOut:
    """The centre on held-out prompts."""

    generation: int
    score: float
    accuracy: float  # share of completions whose score is at least `right`
    examples: tuple[tuple[str, str, float], ...]  # prompt, completion, score


@dataclass
class LanguageTask:
    """`reward_batch` of a language model: members complete the same prompts, and are rewarded by their mean score."""

    language: LanguageModel
    train: Tokens
    held_out: Tokens | None
    score: Score
    decoding: Decoding
    stop: Sequence[str]
    prompts_per_generation: int
    seed: int
    right: float = 1.0
    evaluate_every: int = 10
    balance: bool = False
    focus: float = 0.0  # share of a generation's prompts that are chosen among those the centre gets wrong
    speedups: Speedups = field(default_factory=Speedups)
    note: Callable[[str], None] = print
    on_held_out: Callable[[HeldOut], None] | None = None
    tokens: int = 0  # completion tokens made so far
    seconds: dict[str, float] = field(default_factory=lambda: {"generate": 0.0, "score": 0.0})
    _generator: Generator | None = None
    _center: Center | None = None
    _prompts: tuple[int, torch.Tensor] | None = None  # those of a generation
    _reports: list[HeldOut] | None = None  # None: in the user's process
    _at: int = -1  # the generation that the held-out prompts were last evaluated in

    def __call__(self, members: LowRankMembers) -> torch.Tensor:
        """(members,) mean scores on this generation's prompts."""
        generation = members.generation
        make = self._generator_for(members)
        wanted = self.held_out is not None and generation % self.evaluate_every == 0
        if wanted and not members.start and self._at != generation:  # by the engine that evaluates the first members
            self._evaluate(members, make, generation)
            self._at = generation  # not before: out of memory, the chunk is tried again
        chosen = self._chosen(generation, members)
        owners = chosen.to(make.device).repeat(len(members))
        prompts = self._on(make.device)
        rows = self._timed(
            "generate", lambda: make(prompts.ids[owners], prompts.valid[owners], self._noise(members, chosen))
        )
        self.tokens += rows.numel()
        found = self._timed("score", lambda: self._scored(self.train, owners, rows))
        return torch.from_numpy(member_scores(found.by_row.reshape(len(members), -1), self.balance))

    def _timed(self, what: str, do: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        value = do()
        if what == "generate" and isinstance(value, torch.Tensor) and value.is_cuda:
            torch.cuda.synchronize()
        self.seconds[what] += time.perf_counter() - start
        return value

    def _scored(self, prompts: Tokens, owners: torch.Tensor, rows: torch.Tensor) -> Scored:
        return score_rows(self.language, prompts.texts, owners, rows, self.score, self.stop)

    def _chosen(self, generation: int, members: LowRankMembers) -> torch.Tensor:
        """This generation's prompts, by address, and with `focus` by what the centre gets wrong."""
        if self._prompts is None or self._prompts[0] != generation or not members.start:
            self._prompts = generation, torch.from_numpy(self._choose(generation, members))
        return self._prompts[1]

    def _choose(self, generation: int, members: LowRankMembers) -> NDArray[np.int64]:
        count, rng = min(self.prompts_per_generation, len(self.train)), generator(self.seed, Purpose.EPISODE, generation)
        if not self.focus or count == len(self.train):  # all of them where there are no more
            return np.sort(rng.choice(len(self.train), count, replace=False))
        size = min(max(CANDIDATES, count), len(self.train))
        pool = rng.choice(len(self.train), size, replace=False)
        if self._center is None or self._center.module is not members.module:
            length, capture = self.train.ids.shape[1], self.speedups.capture
            self._center = Center(self.language, members, size, length, self.decoding, capture, self.note)
        make, owners = self._center.read(), torch.from_numpy(pool)
        prompts, placed = self._on(make.device), owners.to(make.device)
        rows = self._timed("generate", lambda: make(prompts.ids[placed], prompts.valid[placed]))
        self.tokens += rows.numel()
        scored = self._timed("score", lambda: self._scored(self.train, placed, rows))
        return focused(pool, scored.by_row < self.right, count, self.focus)

    def _noise(self, members: LowRankMembers, chosen: torch.Tensor) -> torch.Tensor | None:
        """Uniform numbers for sampling, by (generation, direction, prompt, token): a mirrored pair shares them."""
        if self.decoding.temperature == 0:
            return None
        loaded, count = members.loaded, self.decoding.max_new_tokens
        directions = range(members.start, members.start + loaded.directions)
        drawn = uniforms(self.seed, members.generation, directions, len(chosen) * count, loaded.left.device)
        rows = drawn.view(loaded.directions, 1, len(chosen), count).expand(-1, loaded.mirror, -1, -1)
        return rows.reshape(-1, count)

    def _generator_for(self, members: LowRankMembers) -> Generator:
        """The generator of this shape; another number of members needs another."""
        rows = len(members) * min(self.prompts_per_generation, len(self.train))
        made = self._generator
        if made is None or made.rows != rows or made.model is not members.module:
            self._generator = None  # its buffers go first
            length = self.train.ids.shape[1]
            made = Generator(members.module, rows, length, self.decoding, self.speedups, self.note)
            self._generator = made
        return made

    def _on(self, device: torch.device) -> Tokens:
        if self.train.ids.device != device:
            self.train = self.train.to(device)
        return self.train

    def _evaluate(self, members: LowRankMembers, make: Generator, generation: int) -> None:
        """The centre on the held-out prompts, in the shape of a generation, with every member at the centre."""
        assert self.held_out is not None
        with members.loaded.centered():
            rows = complete(make, self.held_out)
        owners = torch.arange(len(self.held_out))
        scored = self._scored(self.held_out, owners, rows.cpu())
        found = held_out(generation, scored, self.held_out, self.right)
        if self.on_held_out is not None:
            self.on_held_out(found)
        elif self._reports is not None:
            self._reports.append(found)

    def __getstate__(self) -> dict[str, Any]:
        """For an engine in another process: without graphs and displays; what it finds is taken from it as reports."""
        here: dict[str, Any] = {
            "_generator": None,
            "_center": None,
            "note": _silent,
            "on_held_out": None,
            "tokens": 0,
            "_reports": [],
        }
        return {**vars(self), "train": self.train.to(torch.device("cpu")), **here}

    def take_reports(self) -> tuple[int, list[HeldOut]]:
        """Tokens made and held-out evaluations since the last call."""
        taken = self.tokens, list(self._reports or ())
        self.tokens, self._reports = 0, []
        return taken

    def report(self, reports: tuple[int, list[HeldOut]]) -> None:
        """What an engine in another process found."""
        self.tokens += reports[0]
        for found in reports[1]:
            if self.on_held_out is not None:
                self.on_held_out(found)


def complete(make: Generator, prompts: Tokens) -> torch.Tensor:
    """The most likely completions of any number of prompts by a generator of fixed shape, in as many passes as it takes."""
    ids, valid = prompts.ids.to(make.device), prompts.valid.to(make.device)
    parts = []
    for start in range(0, len(prompts), make.rows):
        index = torch.arange(start, start + make.rows, device=make.device).clamp(max=len(prompts) - 1)
        rows = make(ids[index], valid[index])
        parts.append(rows[: min(make.rows, len(prompts) - start)].clone())
    return torch.cat(parts)


def held_out(generation: int, scored: Scored, prompts: Tokens, right: float, examples: int = 4) -> HeldOut:
    """Mean score, accuracy and the first prompts' completions."""
    values = scored.by_row
    first = [
        (prompts.texts[row], scored.completions[scored.inverse[row]], float(values[row]))
        for row in range(min(examples, len(values)))
    ]
    return HeldOut(generation, float(values.mean()), float((values >= right).mean()), tuple(first))
