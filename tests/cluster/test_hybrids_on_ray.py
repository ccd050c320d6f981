"""The algorithms with gradients on a cluster: the bits of one process, whatever comes, goes or dies on the way."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import Training, bits, wait_for

import esker
from esker.errors import UsageError

ENV = "hybrid_worlds:Reach"
SMALL: dict[str, Any] = {
    "preset": None,
    "hidden": (8, 8),
    "batch_size": 8,
    "initial_steps": 40,
    "center_episodes": 2,
    "slots": None,
    "noise": None,
    "checkpoint_every": 1,
}
CEM = {"algo": "cem-rl", "population": 4, "rl_population": 2}
P_CEM = CEM | {"algo": "p-cem-rl"}
AES = {
    "algo": "aes-rl",
    "results_per_generation": 3,
    "mean_episodes": 2,
    "critic_chunk": 20,
    "mean_update_param": 5.0,
}


def hybrid(**options: Any) -> dict[str, Any]:
    """Options of a small run; those of the other cluster tests that hybrids lack are left out."""
    return {name: value for name, value in (SMALL | options).items() if value is not None or name == "preset"}


class Hybrid(Training):
    """A run on the cluster with its coordinator at hand."""

    def __init__(self, path: Path, env: str = ENV, **options: Any) -> None:
        super().__init__(path, env, **options)


def alone(path: Path, **options: Any) -> bytes:
    """The state that the same request gives inside one process."""
    esker.train(ENV, run_dir=str(path), workers=0, quiet=True, **hybrid(**options))
    return bits(path)


def test_smoke(two_nodes: Any, tmp_path: Path) -> None:
    expected = alone(tmp_path / "alone", generations=3, **P_CEM)
    stop = lambda row: False  # noqa: E731
    esker.train(
        ENV, run_dir=str(tmp_path / "ray"), engine="ray", workers=2, quiet=True, on_generation=stop, generations=3, **hybrid(**P_CEM)
    )
    assert bits(tmp_path / "ray") == expected
