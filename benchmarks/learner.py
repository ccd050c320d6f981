"""TD3 updates per second: esker's learner against a bare torch loop over the same networks and batch.

    python benchmarks/learner.py [--device cuda] [--compile] [--seconds 10] [--json]
    python benchmarks/learner.py --together 5 [...]        # --batched-rl: actors trained at once against one by one

Both are measured in turns, so that a noisy machine is noisy for both; medians over the turns are reported.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import statistics
import time

import numpy as np
import torch
from torch import nn

from esker.learners.actors import Actors
from esker.learners.batches import Batches
from esker.learners.networks import initial
from esker.learners.replay import Replay
from esker.learners.rows import SharedRows, TransitionLayout
from esker.learners.spec import LearnerSpec
from esker.learners.td3 import TD3, Actor, critic_network

OBSERVATION, ACTION, ROWS = 17, 6, 100_000  # HalfCheetah's sizes
TURNS = 5


def ours(spec: LearnerSpec):
    """A function that makes a given number of esker's updates."""
    rows = SharedRows.create(None, spec.layout.width)
    replay = Replay(rows, 200_000, spec.device)
    rng = np.random.default_rng(0)
    replay.append(rng.standard_normal((ROWS, spec.layout.width)).astype(np.float32))
    learner = TD3(spec, 2, rng)
    batches = Batches(spec, replay, 1)
    return lambda updates: learner.train(batches, updates)


def actors(spec: LearnerSpec, count: int):
    """Two functions that make a number of updates of each of `count` actors: all at once, and one by one."""
    rows = SharedRows.create(None, spec.layout.width)
    replay = Replay(rows, 200_000, spec.device)
    rng = np.random.default_rng(0)
    replay.append(rng.standard_normal((ROWS, spec.layout.width)).astype(np.float32))
    starts = np.stack([initial(spec.actor_sizes, rng) for _ in range(count)])
    together, alone, critic = Actors(spec, count), Actor(spec), critic_network(spec)
    critic.flat.normal_(std=0.05)

    def at_once(updates: int) -> None:
        together.begin(starts)
        together.train(replay, 1, critic, updates, lambda: None)

    def one_by_one(updates: int) -> None:
        for start in starts:
            alone.begin(start)
            alone.train(Batches(spec, replay, 1), critic, updates, lambda: None)

    return at_once, one_by_one


def bare(spec: LearnerSpec, kind: str = "td3"):
    """A function that makes a given number of updates with bare modules and optimizers: of td3, critic or actor."""

    def network(inputs: int, outputs: int, activation: type[nn.Module]) -> nn.Module:
        sizes = [inputs, *spec.hidden, outputs]
        layers = [part for a, b in itertools.pairwise(sizes) for part in (nn.Linear(a, b), activation())]
        return nn.Sequential(*layers[:-1]).to(spec.device)

    actor, q1, q2 = (
        network(OBSERVATION, ACTION, nn.Tanh),
        network(OBSERVATION + ACTION, 1, nn.LeakyReLU),
        network(OBSERVATION + ACTION, 1, nn.LeakyReLU),
    )
    targets = [copy.deepcopy(module) for module in (actor, q1, q2)]
    critics = [*q1.parameters(), *q2.parameters()]
    critic_optimizer = torch.optim.Adam(critics, lr=spec.lr)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=spec.lr)
    columns = [torch.randn(ROWS, width, device=spec.device) for width in (OBSERVATION, ACTION, 1, OBSERVATION, 1)]

    def follow(online, target) -> None:
        with torch.no_grad():
            for parameter, slow in zip(online, target, strict=True):
                slow.lerp_(parameter, spec.tau)

    def update_critics(s, a, r, following, mask) -> None:
        with torch.no_grad():
            noise = (torch.randn_like(a) * spec.policy_noise).clamp(-spec.noise_clip, spec.noise_clip)
            x = torch.cat([following, (torch.tanh(targets[0](following)) + noise).clamp(-1, 1)], 1)
            goal = r + spec.discount * mask * torch.min(targets[1](x), targets[2](x))
        x = torch.cat([s, a], 1)
        loss = nn.functional.mse_loss(q1(x), goal) + nn.functional.mse_loss(q2(x), goal)
        critic_optimizer.zero_grad()
        loss.backward()
        critic_optimizer.step()
        follow(critics, [*targets[1].parameters(), *targets[2].parameters()])

    def update_actor(s, follows: bool) -> None:
        loss = -q1(torch.cat([s, torch.tanh(actor(s))], 1)).mean()
        actor_optimizer.zero_grad()
        loss.backward()
        actor_optimizer.step()
        if follows:
            follow(actor.parameters(), targets[0].parameters())

    def run(updates: int) -> None:
        for number in range(updates):
            chosen = torch.randint(ROWS, (spec.batch,), device=spec.device)
            s, a, r, following, mask = (column[chosen] for column in columns)
            if kind != "actor":
                update_critics(s, a, r, following, mask)
            if kind == "actor" or (kind == "td3" and number % 2):
                update_actor(s, kind == "td3")

    return run


def rate(run, seconds: float, device: str) -> float:
    """Updates per second over about `seconds` seconds."""
    done, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        run(64)
        if device != "cpu":
            torch.cuda.synchronize()
        done += 64
    return done / passed


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--seconds", type=float, default=10.0, help="of measuring, for each of the two")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--hidden", default="400,300")
    parser.add_argument("--together", type=int, help="actors to train at once and one by one")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    hidden = tuple(int(size) for size in options.hidden.split(","))
    bound = (1.0,) * ACTION
    spec = LearnerSpec(
        TransitionLayout(OBSERVATION, ACTION),
        tuple(-b for b in bound),
        bound,
        hidden=hidden,
        batch=options.batch,
        device=options.device,
        compile=options.compile,
    )
    if options.together:
        at_once, one_by_one = actors(spec, options.together)
        runs, many = {"at once": at_once, "one by one": one_by_one}, options.together
    else:
        runs, many = {"esker": ours(spec), "bare torch": bare(spec)}, 1
    for run in runs.values():
        run(64)  # allocates, compiles, captures
    rates = {name: [] for name in runs}
    for _ in range(TURNS):
        for name, run in runs.items():
            rates[name].append(many * rate(run, options.seconds / TURNS, options.device))
    median = {name: statistics.median(values) for name, values in rates.items()}
    ratio = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    result = {"device": options.device, "compile": options.compile, "updates_per_second": median, "ratio": ratio}
    if options.json:
        print(json.dumps(result))
    else:
        (one, fast), (other, slow) = median.items()
        print(f"{one} {fast:,.1f} updates/s, {other} {slow:,.1f}; ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
