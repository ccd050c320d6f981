"""Several processes that exchange only rewards: each holds the same strategy and evaluates its slice of the population.

    python examples/exchange_rewards.py [processes] [generations]

Nothing but fitness travels: N numbers per generation, whatever the size of the model. The processes stay bit-identical,
so any of them can save, and one that joins needs a `state_dict` once. `torch.distributed` takes them across machines.
"""

import hashlib
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import esker

POPULATION = 48
x = torch.linspace(-3, 3, 64).unsqueeze(1)


def fitness(model: nn.Module, parameters: torch.Tensor) -> float:
    nn.utils.vector_to_parameters(parameters, model.parameters())
    return -float(((model(x) - torch.sin(x)) ** 2).mean())


@torch.no_grad()
def work(rank: int, processes: int, generations: int, meeting: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    start = nn.utils.parameters_to_vector(model.parameters())
    es = esker.OpenAIES(start, population=POPULATION, sigma=0.05, lr=0.03, seed=0)
    share = POPULATION // processes
    for generation in range(generations):
        mine = es.ask(slice(rank * share, (rank + 1) * share)).parameters()
        local = torch.tensor([fitness(model, row) for row in mine], dtype=torch.float64)
        everyone = [torch.empty(share, dtype=torch.float64) for _ in range(processes)]
        dist.all_gather(everyone, local)
        es.tell(torch.cat(everyone))
        if rank == 0 and (generation + 1) % 50 == 0:
            print(f"generation {generation + 1}: error {-fitness(model, es.center):.4f}")
    digest = hashlib.sha256(es.center.numpy().tobytes()).hexdigest()[:12]
    print(f"process {rank} ends with centre {digest}\n", end="")  # one write: processes share the terminal
    dist.destroy_process_group()


if __name__ == "__main__":
    processes, generations = (int(value) for value in (sys.argv[1:3] + ["2", "200"][len(sys.argv) - 1 :]))
    assert POPULATION % (2 * processes) == 0, f"{POPULATION} members cannot be shared out in pairs to {processes} processes"
    mp.spawn(work, (processes, generations, tempfile.mkdtemp() + "/meeting"), nprocs=processes)
