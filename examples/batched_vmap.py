"""A batched reward: all members of a module evaluated at once under vmap, on the CPU or a GPU.

python examples/batched_vmap.py [--cuda] [--iterations 300]
"""

import torch
from command import Command, count
from torch import nn

import esker

parser = Command(__doc__)
parser.add_argument("-c", "--cuda", action="store_true", help="evaluate members on the GPU")
parser.add_argument("--iterations", type=count, default=300)
options = parser.parse_args()
device = parser.cuda(options.cuda)

x = torch.linspace(-3, 3, 128, device=device).unsqueeze(1)
target = torch.sin(x)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)).to(device)


def reward_batch(members):
    """`members` holds stacked parameters by name; called, it gives every member's outputs, here (n, 128, 1)."""
    return -((members(x) - target) ** 2).mean((1, 2))


evolution = esker.Evolution(model, reward_batch=reward_batch, population=256, sigma=0.05, lr=0.03, members_per_batch=64)
evolution.run(options.iterations, report_every=50)
print(f"mean squared error {float(((model(x) - target) ** 2).mean().detach()):.2e}")
