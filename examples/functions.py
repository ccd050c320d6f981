"""Sphere, Rosenbrock and Rastrigin, each in a few lines."""

import torch
from command import Command

import esker


def sphere(x):
    return -(x**2).sum(-1)


def rosenbrock(x):
    return -(100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2).sum(-1)


def rastrigin(x):
    return -(10 + x**2 - 10 * torch.cos(2 * torch.pi * x)).sum(-1)


share = Command(__doc__).number("share", 1.0, "part of the usual generations to make").parse_args().share
for function, start, options, iterations in [
    (sphere, torch.ones(100), {"sigma": 0.02, "lr": 0.1, "lr_decay": 0.98}, 250),
    (rosenbrock, torch.zeros(10), {"sigma": 0.02, "lr": 0.03, "lr_decay": 0.997, "population": 60}, 700),
    (
        rastrigin,
        torch.full((30,), 3.0),
        {"sigma": 1.0, "lr": 0.2, "sigma_decay": 0.99, "lr_decay": 0.99, "population": 400},
        500,
    ),
]:
    before = -float(function(start))
    x = esker.Evolution(start, reward_batch=function, quiet=True, **options).run(max(1, round(iterations * share)))
    print(f"{function.__name__}, d = {len(x)}: {before:.3g} -> {-float(function(x)):.3g}")
