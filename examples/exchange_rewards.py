"""Several processes that exchange only rewards: each holds the same strategy and evaluates its part of the population.

    python examples/exchange_rewards.py                                # two processes, equal parts
    python examples/exchange_rewards.py --shares 5 2 1                 # three, the first with five eighths of the members
    python examples/exchange_rewards.py --processes 7 --generations 50

Nothing but fitness travels: N numbers per generation, whatever the size of the model. The processes stay bit-identical,
so any of them can save, and one that joins needs a `state_dict` once. `torch.distributed` takes them across machines.
"""

import hashlib
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from command import Command, amount, count
from torch import nn

import esker

POPULATION = 48
x = torch.linspace(-3, 3, 64).unsqueeze(1)


def fitness(model: nn.Module, parameters: torch.Tensor) -> float:
    nn.utils.vector_to_parameters(parameters, model.parameters())
    return -float(((model(x) - torch.sin(x)) ** 2).mean())


@torch.no_grad()
def work(rank: int, bounds: list[int], generations: int, meeting: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=len(bounds) - 1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    start = nn.utils.parameters_to_vector(model.parameters())
    es = esker.OpenAIES(start, population=POPULATION, sigma=0.05, lr=0.03, seed=0)
    mine = slice(bounds[rank], bounds[rank + 1])
    for generation in range(generations):
        everyone = torch.zeros(POPULATION, dtype=torch.float64)
        everyone[mine] = torch.tensor([fitness(model, row) for row in es.ask(mine).parameters()], dtype=torch.float64)
        dist.all_reduce(everyone)  # the others' members are zero here: the sum is exact
        es.tell(everyone)
        if rank == 0 and (generation + 1) % 50 == 0:
            print(f"generation {generation + 1}: error {-fitness(model, es.center):.4f}")
    digest = hashlib.sha256(es.center.numpy().tobytes()).hexdigest()[:12]
    print(f"process {rank} ({mine.stop - mine.start} members) ends with centre {digest}\n", end="")  # one write
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = Command(__doc__)
    parser.add_argument("--processes", type=count, default=2)
    parser.add_argument("--shares", type=amount, nargs="+", help="how much each process gets (default: equal shares)")
    parser.add_argument("--generations", type=count, default=200)
    options = parser.parse_args()
    shares = options.shares or [1.0] * options.processes
    bounds = [round(POPULATION * sum(shares[:end]) / sum(shares)) for end in range(len(shares) + 1)]
    mp.spawn(work, (bounds, options.generations, tempfile.mkdtemp() + "/meeting"), nprocs=len(shares))
