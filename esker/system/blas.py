"""One BLAS thread: products then have the same bits in every process, and workers' siblings keep their cores.

Worker processes are started with one thread. Work inside the caller's process (`workers=0`, a loaded policy) cannot rely
on the environment, so it asks NumPy's own OpenBLAS, where that is what NumPy came with.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's products run on one thread inside this block; does nothing where BLAS is another library."""
    control = _openblas()
    if control is None:
        yield
        return
    count, set_count = control
    before = count()
    set_count(1)
    try:
        yield
    finally:
        set_count(before)


@cache
def _openblas() -> tuple[Any, Any] | None:
    """The functions that read and set the number of threads."""
    for path in sorted((Path(np.__file__).parent.parent / "numpy.libs").glob("*openblas*")):
        library = ctypes.CDLL(str(path))
        for prefix, suffix in (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", "")):
            names = f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}"
            if all(hasattr(library, name) for name in names):
                return getattr(library, names[0]), getattr(library, names[1])
    return None
