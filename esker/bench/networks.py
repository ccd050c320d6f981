"""Networks: a population's forward against a loop of single ones, what normalising costs, what recurrence costs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from esker.bench.measurement import Measurement
from esker.config.options import ESConfig
from esker.policies.choose import conv_lstm, nature_cnn, recurrent
from esker.policies.layered import Layered, LayeredRows
from esker.policies.mlp import MLP
from esker.policies.network import Inputs, Network, Rows
from esker.system.blas import one_blas_thread

SLOTS = 16
EPISODE = 1000  # decisions of an Atari episode that the share of normalising is reckoned for: a short one of Pong


def forward(quick: bool) -> list[Measurement]:
    """All rows at once against each alone in torch, alternated; the same parameters and images."""
    cases = {"nature-cnn": ((4, 84, 84), 1.1), "conv-lstm": ((1, 42, 42), 1.5)}
    found = []
    for name, (shape, wanted) in cases.items():
        network = _image_network(name, shape)
        rows, images = _opened(network, SLOTS)
        loop = _torch_loop(network, rows, images)
        with one_blas_thread():
            together, alone = _alternate([lambda r=rows, i=images: r.forward(i), loop], 3 if quick else 10)  # type: ignore[misc]
        detail = {"population ms": f"{together * 1e3:.2f}", "loop ms": f"{alone * 1e3:.2f}", "slots": SLOTS}
        found.append(Measurement(f"forward/{name}", alone / together, "× a torch loop", f"≥ {wanted}", detail))
    return found


def normalizing(quick: bool) -> list[Measurement]:
    """The share of an episode's time that a reference batch costs, compared with network and environment steps."""
    from esker.worlds.atari import Atari
    from esker.worlds.environments import Environment

    env = Environment("ALE/Pong-v5", atari=Atari()).make()
    env.reset(seed=0)
    found = []
    for frames in (32, 128):
        network = _image_network("nature-cnn", (4, 84, 84), frames)
        rows, images = _opened(network, SLOTS)

        def game() -> None:
            if any(env.step(0)[2:4]):
                env.reset(seed=0)

        def calibrate(rows: LayeredRows = rows) -> None:
            rows.start(0)

        def act(rows: LayeredRows = rows, images: Inputs = images) -> None:
            rows.forward(images)

        with one_blas_thread():
            start, step, play = _alternate([calibrate, act, game], 3 if quick else 10)
        episode = EPISODE * (step / SLOTS + play)
        detail = {
            "start ms": f"{start * 1e3:.1f}",
            "forward ms": f"{step / SLOTS * 1e3:.2f}",
            "environment ms": f"{play * 1e3:.2f}",
            "decisions": EPISODE,
        }
        share = start / (start + episode)
        found.append(Measurement(f"normalizing/{frames} frames", 100 * share, "% of an episode", "small", detail))
    env.close()
    return found


def recurrence(quick: bool) -> list[Measurement]:
    """A recurrent forward against that of the MLP of the same sizes, HalfCheetah's, 32 rows."""
    mlp = MLP((17, 64, 64, 6))
    inputs = np.random.default_rng(0).standard_normal((32, 17)).astype(np.float32)
    calls: list[Callable[[], object]] = []
    networks: list[Network] = [mlp, *(recurrent(replace(ESConfig(), network=kind), 17, 6) for kind in ("gru", "lstm"))]
    for network in networks:
        rows: Rows = network.open(32)
        rows.parameters[:] = network.initial(np.random.default_rng(0))
        for row in range(32):
            rows.start(row)
        calls.append(lambda rows=rows: rows.forward(inputs))  # type: ignore[misc]
    with one_blas_thread():
        plain, *others = _alternate(calls, 20 if quick else 200)
    return [
        Measurement(
            f"recurrence/{kind}",
            seconds / plain,
            "× the MLP's forward",
            "stated",
            {"µs a step": f"{seconds / 32 * 1e6:.1f}", "mlp": f"{plain / 32 * 1e6:.1f}"},
        )
        for kind, seconds in zip(("gru", "lstm"), others, strict=True)
    ]


def _image_network(name: str, shape: tuple[int, ...], frames: int = 32) -> Layered:
    network = (nature_cnn if name == "nature-cnn" else conv_lstm)(ESConfig(), shape, 6)
    images = np.random.default_rng(0).integers(0, 256, (frames, *shape), dtype=np.uint8)
    return replace(network, reference=images) if network.normalized else network


def _opened(network: Layered, count: int) -> tuple[LayeredRows, Inputs]:
    rng = np.random.default_rng(0)
    rows = network.open(count)
    rows.parameters[:] = network.initial(rng) + 0.02 * rng.standard_normal(rows.parameters.shape, dtype=np.float32)
    for row in range(count):
        rows.start(row)
    return rows, rng.integers(0, 256, (count, *network.input_shape), dtype=np.uint8)


def _torch_loop(network: Layered, rows: LayeredRows, images: Inputs) -> Callable[[], object]:
    """Each row's parameters in its own torch module, called one after the other on one thread."""
    import torch

    from esker.system.torch_threads import one_torch_thread
    from esker.tools.torch_policies.networks import torch_network

    modules = [torch_network(network, parameters).eval() for parameters in rows.parameters]
    states = [module.initial_state() for module in modules]
    inputs = torch.from_numpy(images).float()

    def loop() -> None:
        with one_torch_thread(), torch.no_grad():
            for row, module in enumerate(modules):
                _, *after = module(inputs[row : row + 1], *states[row])
                states[row] = tuple(after)

    return loop


def _alternate(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """The median seconds of each call, measured in turns so that a busy moment affects all equally."""
    spent: list[list[float]] = [[] for _ in calls]
    for number in range(rounds + 1):  # the first round warms up
        for call, times in zip(calls, spent, strict=True):
            began = time.perf_counter()
            call()
            if number:
                times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in spent]
