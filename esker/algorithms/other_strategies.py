"""Synchronous algorithms with other strategies than OpenAI-ES: PGPE, SNES, sep-CMA-ES, CMA-ES."""

from __future__ import annotations

from esker.algorithms.es import synchronous
from esker.config.strategies import CMAConfig, PGPEConfig, SepCMAConfig, SNESConfig

PGPE = synchronous("pgpe", PGPEConfig)
SNES = synchronous("snes", SNESConfig)
SEP_CMA = synchronous("sep-cma", SepCMAConfig)
CMA = synchronous("cma", CMAConfig)
