"""Networks given as Python objects: a class, a function or a module, also from a notebook or a script.

A class or function that workers can import is known by its path, as on the command line. Anything else stays in this
process under a name in angle brackets and travels to workers inside their task; a run folder holds only the name.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from esker.errors import UsageError
from esker.system.imports import path_of

Maker = Callable[..., Any]
_offered: dict[str, Maker] = {}


@dataclass(frozen=True)
class Copies:
    """Makes copies of a module, parameters included."""

    module: Any

    def __call__(self) -> Any:
        return copy.deepcopy(self.module)


def network_name(network: Any) -> str:
    """The name under which a configuration knows a network. Anything else raises UsageError."""
    if isinstance(network, str):
        return network
    if "torch" in sys.modules and isinstance(network, sys.modules["torch"].nn.Module):
        return _offer(f"{type(network).__module__}:<instance of {type(network).__qualname__}>", Copies(network))
    if not callable(network):
        raise UsageError(
            f"network is a {type(network).__name__}; expected a name, a torch module, or a class or function that makes one"
        )
    if (path := path_of(network)) is not None:
        return path
    module, name = getattr(network, "__module__", ""), getattr(network, "__qualname__", type(network).__name__)
    return _offer(f"{module}:<{name.replace('<', '').replace('>', '')}>", network)


def offered(name: str) -> Maker | None:
    """The object behind a name; None for a path that can be imported. One that this process lacks raises UsageError."""
    if "<" not in name:
        return None
    if name not in _offered:
        raise UsageError(f"network {name!r} was a Python object; pass it again, as esker.resume(run_dir, network=…)")
    return _offered[name]


def _offer(name: str, maker: Maker) -> str:
    """Keep a maker under a name; a later one of the same name replaces it, as when a notebook cell is run again."""
    _offered[name] = maker
    return name
