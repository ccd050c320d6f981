"""A lighter start of torch: optimizers without its compiler.

Making the first optimizer imports torch._dynamo, and so does its first step: as long as importing torch itself, only to
tell the compiler to keep out. Nothing here is compiled, so both imports are avoided.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer

MARK = "__dynamo_disable"  # where torch keeps the method that its compiler keeps out of, once it has been asked for
_steps: dict[type, Callable[[Optimizer], None]] = {}  # each kind of optimizer's step, without the wrappers around it
METHODS = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


def spare_compiler() -> None:
    """Let optimizers be made without importing torch._dynamo. Does nothing where it is loaded already."""
    if "torch._dynamo" in sys.modules:
        return
    from torch.optim import Optimizer

    for name in METHODS:
        method = getattr(getattr(Optimizer, name, None), "__wrapped__", None)
        if method is not None and not hasattr(method, MARK):
            setattr(method, MARK, method)


def bare_step(optimizer: Optimizer) -> None:
    """A step without hooks and without gradients."""
    import torch

    with torch.no_grad():
        kind = type(optimizer)
        if kind not in _steps:
            _steps[kind] = inspect.unwrap(kind.step)
        _steps[kind](optimizer)
