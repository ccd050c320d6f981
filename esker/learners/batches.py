"""Batches for training, and how updates are run: one by one, or on CUDA several at a time as one captured graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import torch

from esker.learners.replay import Replay
from esker.learners.spec import LearnerSpec

Tick = Callable[[], None]
F = TypeVar("F", bound=Callable[..., Any])
BURST = 8  # updates in one captured graph
AHEAD = 4  # bursts that may wait on the device before the process sleeps: CUDA's own full queue would keep a core spinning


class Source(Protocol):
    """Where an update gets its batch and its smoothing noise from."""

    def draw(self) -> torch.Tensor: ...

    def noise(self) -> torch.Tensor: ...


class Batches:
    """Batches and smoothing noise for a stretch of updates, decided by one key."""

    def __init__(self, spec: LearnerSpec, replay: Replay, key: int) -> None:
        self.spec = spec
        self.refresh(replay)
        self.random = torch.Generator(device=spec.device).manual_seed(key >> 1)

    def refresh(self, replay: Replay) -> None:
        """Sample from what the buffer holds now."""
        self.rows, self.first, self.end = replay.window()

    def draw(self) -> torch.Tensor:
        """One batch of rows, drawn with replacement."""
        chosen = torch.randint(self.first, self.end, (self.spec.batch,), generator=self.random, device=self.spec.device)
        return self.rows.index_select(0, chosen)

    def noise(self) -> torch.Tensor:
        """Standard normals for the target actions of one batch."""
        shape = (self.spec.batch, self.spec.layout.action)
        return torch.randn(shape, generator=self.random, device=self.spec.device)


class StaticBatches:
    """The batches of one burst, at addresses that a captured graph may rely on."""

    def __init__(self, spec: LearnerSpec, rows: torch.Tensor) -> None:
        self.rows = rows
        self.chosen = torch.zeros((BURST, spec.batch), dtype=torch.int64, device=spec.device)
        self.normals = torch.zeros((BURST, spec.batch, spec.layout.action), device=spec.device)
        self._drawn = self._noised = 0

    def draw(self) -> torch.Tensor:
        self._drawn += 1
        return self.rows.index_select(0, self.chosen[(self._drawn - 1) % BURST])

    def noise(self) -> torch.Tensor:
        self._noised += 1
        return self.normals[(self._noised - 1) % BURST]

    def fill(self, batches: Batches) -> None:
        """Choose the batches of the next burst."""
        self.chosen.random_(batches.first, batches.end, generator=batches.random)
        self.normals.normal_(generator=batches.random)


class Bursts:
    """Runs `update` many times. `owner` holds what it changes: its `state` survives the capture unchanged."""

    def __init__(self, spec: LearnerSpec, update: Callable[[Any], Any], owner: Any, multiple: int = 1) -> None:
        self.spec = spec
        self.update = update
        self.owner = owner
        self.multiple = multiple  # a burst begins only where the owner's pattern does
        self._graph: torch.cuda.CUDAGraph | None = None
        self._static: StaticBatches | None = None
        self._under_way: deque[torch.cuda.Event] = deque()

    def run(self, batches: Batches, updates: int, tick: Tick) -> None:
        """Run `updates` updates."""
        captured = self.spec.device != "cpu" and BURST % self.multiple == 0
        while updates > 0:
            critics = getattr(self.owner, "critics", self.owner)
            aligned = getattr(critics, "updates", 0) % self.multiple == 0
            if captured and updates >= BURST and aligned:
                self._replay(batches)
                if hasattr(critics, "updates"):
                    critics.updates += BURST
                updates -= BURST
            else:
                self.update(batches)
                updates -= 1
            tick()

    def _replay(self, batches: Batches) -> None:
        if self._static is None or self._static.rows is not batches.rows:
            self._capture(batches)
        assert self._static is not None
        assert self._graph is not None
        if len(self._under_way) == AHEAD:
            self._under_way.popleft().synchronize()
        self._static.fill(batches)
        self._graph.replay()
        self._under_way.append(torch.cuda.Event(blocking=True))  # type: ignore[no-untyped-call]
        self._under_way[-1].record()

    def _capture(self, batches: Batches) -> None:
        """Warm up aside (the first calls compile and allocate), capture, and put everything back."""
        before, totals = self.owner.state(), [total.clone() for total in self.owner.totals]
        self._static = StaticBatches(self.spec, batches.rows)
        self._static.fill(batches)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3 * BURST):
                self.update(self._static)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for _ in range(BURST):
                self.update(self._static)
        self.owner.load(before)
        for total, value in zip(self.owner.totals, totals, strict=True):
            total.copy_(value)


def compiled(function: F, spec: LearnerSpec) -> F:
    """A function fused by torch.compile, where that is wanted."""
    return torch.compile(function) if spec.compile else function  # type: ignore[return-value]
