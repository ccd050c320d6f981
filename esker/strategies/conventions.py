"""Other systems' hyper-parameters as esker's: the options with which the same numbers make the same update.

esker's gradient is g = 1/(Nσ) Σ wᵢεᵢ. What a system leaves out of that, or adds to it, moves into `lr` and
`weight_decay` here. Each function returns options for `esker.OpenAIES` and `esker.Evolution`.
"""

from __future__ import annotations

from typing import Any


def es_torch(npop: int, lr: float, std: float, weight_decay: float = 0.0) -> dict[str, Any]:
    """es-torch: θ += lr/N Σ wᵢεᵢ - lr·decay·θ, mirrored, centred ranks (its perturbations carry σ, so 1/σ cancels)."""
    return {
        "population": npop,
        "sigma": std,
        "lr": lr * std,
        "weight_decay": weight_decay / std,  # SGD's L2 term is lr·weight_decay·θ, with the lr of the line above
        "optimizer": "sgd",
        "shaping": "centered_rank",
        "antithetic": True,
    }


def evolution_module(
    population_size: int, sigma: float, learning_rate: float, decay: float = 1.0, sigma_decay: float = 1.0
) -> dict[str, Any]:
    """EvolutionModule: θ += lr/(Nσ) Σ (Fᵢ - mean)/std εᵢ, independent members; lr and σ decay after each iteration."""
    return {
        "population": population_size,
        "sigma": sigma,
        "lr": learning_rate,
        "lr_decay": decay,
        "sigma_decay": sigma_decay,
        "optimizer": "sgd",
        "shaping": "normalized",
        "antithetic": False,
    }
