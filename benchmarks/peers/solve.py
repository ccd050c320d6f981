"""The time that one contender of `make bench-peers` needs to solve CartPole-v1: an entry per seed, as one line of JSON.

    python benchmarks/peers/solve.py esker 0 1 2 3 4

The same algorithm and settings for all: OpenAI-ES with mirrored noise, centred ranks and Adam on two processes, as the
preset `cartpole/es`, but without normalised observations, which the minimal loop does not have. In every generation the
centre plays 10 episodes beside the population; the run ends with the first generation where their mean is 475. Imports are
not timed. Peers start their processes before the clock starts, esker after it. Seeds give the start and the noise; the
environments of the peers seed themselves.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from contenders import HIDDEN, WORKERS, _episode, _open_minimal

ENV = "CartPole-v1"
POPULATION, SIGMA, LR = 40, 0.1, 0.05
SOLVED, EPISODES = 475.0, 10
CAP = 60.0  # seconds; a seed that takes longer is unsolved
SIZES = (4, HIDDEN, HIDDEN, 2)

Look = tuple[float, int]  # the centre's mean return of a generation, and all steps up to its end


def esker(seed: int) -> dict[str, Any]:
    """esker: whole runs by `esker.train`, start of the workers and every commit to disk included."""
    import esker

    rows: list[tuple[float, dict[str, Any]]] = []
    options = {"population": POPULATION, "sigma": SIGMA, "lr": LR, "hidden": (HIDDEN, HIDDEN), "workers": WORKERS}
    options |= {"normalize_observations": False, "center_episodes": EPISODES, "goal": SOLVED, "patience": 1}
    with tempfile.TemporaryDirectory() as folder:
        options |= {"preset": None, "quiet": True, "seed": seed, "wall_time": CAP, "run_dir": f"{folder}/run"}
        began = time.perf_counter()
        esker.train(ENV, on_generation=lambda row: rows.append((time.perf_counter() - began, row)), **options)
    seconds, last = rows[-1]
    solved = last["center_return"] >= SOLVED
    return {"seed": seed, "solved": solved, "seconds": seconds, "steps": last["env_steps"], "generations": len(rows)}


def evotorch(seed: int) -> dict[str, Any]:
    """EvoTorch: PGPE, whose standard deviation does not move, over GymNE with two actors."""
    import torch
    from evotorch import SolutionBatch
    from evotorch.algorithms import PGPE
    from evotorch.neuroevolution import GymNE

    layers = [f"Linear({inputs}, {outputs})" for inputs, outputs in pairwise(SIZES)]
    problem = GymNE(ENV, " >> Tanh() >> ".join(layers), num_actors=WORKERS)
    searcher = PGPE(
        problem,
        popsize=POPULATION,
        center_learning_rate=LR,
        stdev_learning_rate=0.0,
        stdev_init=SIGMA,
        optimizer="adam",
        center_init=start(seed),
    )
    problem.evaluate(problem.generate_batch(2 * WORKERS))  # starts the actors
    before = problem.interaction_count

    def generations() -> Iterator[Look]:
        torch.manual_seed(seed)
        while True:
            searcher.step()  # the update of the last population, then a new one around the centre it gave
            batch = SolutionBatch(problem, EPISODES)
            batch.set_values(searcher.status["center"].expand(EPISODES, -1))
            problem.evaluate(batch)
            yield float(batch.evals.mean()), problem.interaction_count - before

    found = timed(seed, generations())
    problem.kill_actors()
    return found


def minimal(seed: int) -> dict[str, Any]:
    """The loop that es-torch and RLlib's examples have; see contenders.py."""
    import torch

    with multiprocessing.get_context("spawn").Pool(WORKERS, _open_minimal, (ENV,)) as pool:
        center = torch.nn.Parameter(start(seed))
        pool.map(_episode, [center.detach().numpy()] * 4 * WORKERS, chunksize=1)  # both processes have started

        def generations() -> Iterator[Look]:
            torch.manual_seed(seed)
            optimizer, steps = torch.optim.Adam([center], lr=LR, maximize=True), 0
            while True:
                noise = torch.randn(POPULATION // 2, center.numel())
                noise = torch.cat([noise, -noise])
                members = [*(center.detach() + SIGMA * noise), *[center.detach()] * EPISODES]
                results = pool.map(_episode, [member.numpy() for member in members], chunksize=1)
                returns = torch.tensor([total for total, _ in results])
                steps += sum(length for _, length in results)
                yield float(returns[POPULATION:].mean()), steps
                center.grad = ranks(returns[:POPULATION]) @ noise / (POPULATION * SIGMA)
                optimizer.step()

        return timed(seed, generations())


def start(seed: int) -> Any:
    """The first centre as esker draws it, from another generator: Xavier uniform weights, zero biases."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    parts = []
    for inputs, outputs in pairwise(SIZES):
        bound = (6 / (inputs + outputs)) ** 0.5
        parts += [bound * (2 * torch.rand(inputs * outputs, generator=generator) - 1), torch.zeros(outputs)]
    return torch.cat(parts)


def ranks(returns: Any) -> Any:
    """Centred ranks; equal returns share the mean of theirs."""
    below = (returns[:, None] > returns).sum(1) + ((returns[:, None] == returns).sum(1) - 1) / 2
    return below / (len(returns) - 1) - 0.5


def timed(seed: int, generations: Iterator[Look]) -> dict[str, Any]:
    """Generations until the centre has solved it or the time is over."""
    began = time.perf_counter()
    for count, (mean, steps) in enumerate(generations, start=1):
        seconds, solved = time.perf_counter() - began, mean >= SOLVED
        if solved or seconds >= CAP:
            return {"seed": seed, "solved": solved, "seconds": seconds, "steps": steps, "generations": count}
    raise AssertionError("generations do not end")


CONTENDERS: dict[str, Callable[[int], dict[str, Any]]] = {"esker": esker, "evotorch": evotorch, "minimal": minimal}


if __name__ == "__main__":
    print(json.dumps([CONTENDERS[sys.argv[1]](int(seed)) for seed in sys.argv[2:]]))
