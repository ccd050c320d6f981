"""The network that a configuration names."""

from __future__ import annotations

from esker.config import ESConfig
from esker.errors import UsageError, nearest
from esker.policies.mlp import MLP
from esker.policies.network import Network

NETWORKS = ("mlp", "linear")


def network_for(config: ESConfig, inputs: int, outputs: int) -> Network:
    """The network for so many inputs and outputs. An unknown name raises UsageError."""
    if config.network == "mlp":
        return MLP((inputs, *config.hidden, outputs), config.activation, config.initializer)
    if config.network == "linear":
        return MLP((inputs, outputs), config.activation, config.initializer)
    raise UsageError(
        f"unknown network {config.network!r}{nearest(config.network, NETWORKS)}; expected {', '.join(NETWORKS)}"
    )
