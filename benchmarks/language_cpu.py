"""A 64-member low-rank generation of a 376-256-256-17 MLP on a CPU: torch layers against the NumPy path of `esker train`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from esker.functions.lowrank.layers import convert
from esker.functions.lowrank.loaded import Loaded
from esker.functions.lowrank.members import LowRankMembers
from esker.functions.lowrank.parts import parts_of
from esker.functions.lowrank.strategy import LowRankES, Rates
from esker.functions.parameters import FlatParameters, layout_of
from esker.noise.lowrank import LowRankNoise
from esker.policies.mlp import MLP
from esker.policies.shared_mlp import SharedMLPRows

SIZES, MEMBERS, SIGMA = (376, 256, 256, 17), 64, 0.02
PAUSE = 0.2  # seconds before each timing: the other path's threads spin for a while before they sleep


def numpy_generation(steps: int, inputs: np.ndarray) -> Callable[[], None]:
    """Load 64 members, step them, and form the update, as a worker and a strategy do."""
    network = MLP(SIZES)
    shapes = tuple(shape for a, b in pairwise(SIZES) for shape in ((b, a), (b,)))
    noise = LowRankNoise(0, shapes)
    rows = SharedMLPRows(network, noise, MEMBERS)
    center = np.zeros(noise.dimension, dtype=np.float32)
    weights = np.linspace(-1, 1, MEMBERS // 2)

    def run() -> None:
        rows.set_center(center)
        for row in range(MEMBERS):
            rows.load(row, 0, row // 2, SIGMA * (1 - 2 * (row % 2)))
        for _ in range(steps):
            rows.forward(inputs)
        noise.weighted_sum(0, weights)

    return run


def torch_generation(steps: int, inputs: np.ndarray) -> Callable[[], None]:
    """The same by converted torch layers."""
    layers = [nn.Linear(a, b) for a, b in pairwise(SIZES)]
    module = nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
    flat = FlatParameters(module, layout_of(module))
    parts, cpu = parts_of(module, flat, 1), torch.device("cpu")
    es = LowRankES(torch.from_numpy(flat.read()), parts, Rates(population=MEMBERS, sigma=SIGMA, lr=0.01), 0, cpu)
    loaded = Loaded(parts, MEMBERS // 2, 2, torch.float32, cpu)
    members = LowRankMembers(module, loaded, convert(module, parts, loaded))
    x, signs = torch.from_numpy(inputs)[:, None, :], torch.tensor([[SIGMA, -SIGMA]]).expand(MEMBERS // 2, -1)
    weights = np.linspace(-1, 1, MEMBERS // 2)

    def run() -> None:
        loaded.load(es.noise(range(MEMBERS // 2)), signs)
        for _ in range(steps):
            members.each(x)
        es.weighted_sum(weights)
        es.forget_noise()  # as a step does

    return run


def measure(steps: int = 200, rounds: int = 7) -> dict[str, Any]:
    """Seconds of a generation of `steps` steps for each path, in turns; the ratio is the median of the rounds'."""
    torch.set_num_threads(2)
    inputs = np.random.default_rng(0).standard_normal((MEMBERS, SIZES[0])).astype(np.float32)
    paths = numpy_generation(steps, inputs), torch_generation(steps, inputs)
    for path in paths:
        path()
    times = [[_seconds(path) for path in paths] for _ in range(rounds)]
    numpy_seconds, torch_seconds = (statistics.median(column) for column in zip(*times, strict=True))
    ratios = [b / a for a, b in times]
    found = {"steps": steps, "numpy_seconds": numpy_seconds, "torch_seconds": torch_seconds}
    return {**found, "ratio": statistics.median(ratios), "ratios": ratios}


def _seconds(run: Callable[[], None]) -> float:
    time.sleep(PAUSE)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
