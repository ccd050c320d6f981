"""Workers of your own: processes of unequal speed that come and go, evaluate as they like, and report scores over HTTP.

    python examples/own_workers.py                                          # all of it on this machine
    python examples/own_workers.py --worker HOST:PORT [--pause SECONDS]     # one more worker, from another terminal

A worker gets rows of parameters and returns numbers: a simulator in another language or a robot does as well. Slices follow
the measured speed of each worker; one that is killed costs its slice, which another evaluates.
"""

import multiprocessing
import time

import numpy as np
from command import Command, amount, count

import esker

RUN = "own-workers"


def score(row: np.ndarray, pause: float) -> float:
    time.sleep(pause)  # stands for a simulation
    return -float(((row - np.linspace(-1, 1, len(row))) ** 2).sum())


def work(address: str, pause: float, name: str | None = None) -> None:
    evaluated = esker.Worker(address, RUN, name=name).run(lambda row: score(row, pause))
    print(f"the worker with {pause:g} s a member evaluated {evaluated}", flush=True)


def main(generations: int) -> None:
    start = multiprocessing.get_context("spawn").Process
    es = esker.OpenAIES(np.zeros(20), population=32, sigma=0.1, lr=0.1, seed=0)
    with esker.WorkServer(RUN, silent_after=3) as server:
        print(f"workers connect to {server.address}", flush=True)
        fast, slow, killed = (
            start(target=work, args=(server.address, pause, name), daemon=True)
            for name, pause in (("fast", 0.002), ("slow", 0.01), ("killed", 0.004))
        )
        fast.start()
        killed.start()
        for generation in range(generations):
            es.tell(server.evaluate(es))
            if generation == generations // 3:
                killed.kill()
                slow.start()
            if (generation + 1) % max(1, generations // 4) == 0:
                names = len(server.workers)
                print(f"generation {generation + 1}: score {score(es.center.numpy(), 0):.4f} by {names} workers", flush=True)
        while not {"fast", "slow"} <= set(server.workers) and fast.is_alive() and slow.is_alive():
            time.sleep(0.05)  # a worker that begins when the run is over would wait for its coordinator to come back
    fast.join()
    slow.join()


if __name__ == "__main__":
    parser = Command(__doc__)
    parser.add_argument("--worker", metavar="HOST:PORT", help="evaluate for the coordinator there")
    parser.add_argument("--pause", type=amount, default=0.005, help="seconds that a member takes (default: 0.005)")
    parser.add_argument("--generations", type=count, default=60)
    options = parser.parse_args()
    try:
        work(options.worker, options.pause) if options.worker else main(options.generations)
    except (esker.UsageError, esker.RunError) as error:
        parser.error(str(error))
