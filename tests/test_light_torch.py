"""Optimizers without torch's compiler: nothing imports it, and steps keep their bits."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from esker.strategies.optimizers import OPTIMIZERS, Ascent

PROGRAM = """
import sys
from esker.cli import main
assert main(["train", "CartPole-v1", "--generations", "1", "--run-dir", "run", "--quiet", "--workers", "0"]) == 0
print("torch" in sys.modules, "torch._dynamo" in sys.modules)
"""


def test_training_does_not_load_the_compiler(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_have_the_bits_of_torch(name):
    options = {"max_speed": 0.15} if name == "clipup" else {}
    start, random = torch.linspace(-1, 1, 50), np.random.default_rng(0)
    ascent = Ascent(start.clone(), name, lr=0.05, weight_decay=0.01, **options)
    theirs = torch.nn.Parameter(start.clone(), requires_grad=False)
    momentum = {"momentum": 0.9 if name == "clipup" else 0.0} if name in ("sgd", "rmsprop", "clipup") else {}
    optimizer = OPTIMIZERS[name]([theirs], lr=0.05, weight_decay=0.01, **momentum, **options)
    for _ in range(5):
        gradient = random.standard_normal(50).astype(np.float32)
        ascent.step(gradient, 0.05)
        theirs.grad = torch.from_numpy(-gradient)
        optimizer.step()
    assert ascent.center.numpy().tobytes() == theirs.data.numpy().tobytes()
