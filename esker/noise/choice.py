"""Table or counter: where the directions of a run come from."""

from __future__ import annotations

from esker.errors import UsageError
from esker.noise.counter import CounterNoise
from esker.noise.directions import NoiseKind
from esker.noise.table import NoiseTable, TableNoise


def open_table(noise: NoiseKind, seed: int, size: int, dimension: int) -> NoiseTable | None:
    """The shared table, if this kind of noise uses one. One that is too small raises UsageError."""
    if noise != "table":
        return None
    if size < 2 * dimension:
        raise UsageError(
            f"table_size is {size:,}, too small for {dimension:,} parameters: the table must hold at least twice as many "
            "normals; enlarge it, or use counter noise (--noise counter)"
        )
    return NoiseTable.create(seed, size)


def noise_from(table: NoiseTable | None, seed: int, dimension: int) -> TableNoise | CounterNoise:
    """Directions from the shared table, or by counter if there is none."""
    return CounterNoise(seed, dimension) if table is None else TableNoise(table, seed, dimension)
