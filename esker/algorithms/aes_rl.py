"""AES-RL (Lee et al. 2020): every individual moves mean and variance at once, by how it compares with the mean."""

from __future__ import annotations

from esker.algorithms.asynchronous import asynchronous
from esker.config.hybrids import AESRLConfig
from esker.noise.directions import Vector
from esker.strategies.aes import AES


def strategy(config: AESRLConfig, mean: Vector) -> AES:
    """The strategy of a configuration."""
    return AES(
        mean,
        var=config.var_init,
        mean_update=config.mean_update,
        var_update=config.var_update,
        param=config.mean_update_param,
        fixed_n=config.fixed_var_n,
        negative_ratio=config.negative_ratio,
        var_floor=config.var_floor,
        seed=config.seed,
    )


AES_RL = asynchronous("aes-rl", AESRLConfig, strategy)
