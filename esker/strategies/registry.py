"""The strategies by name: esker's own, those that installed packages offer, and any by import path."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from esker.errors import UsageError
from esker.system.plugins import find_class

if TYPE_CHECKING:
    from esker.strategies.strategy import Strategy

GROUP = "esker.strategies"  # the entry-point group of other packages' strategies
BUILT_IN = {
    "openai-es": "esker.strategies.openai_es:OpenAIES",
    "pgpe": "esker.strategies.pgpe:PGPE",
    "snes": "esker.strategies.snes:SNES",
    "sep-cma": "esker.strategies.sep_cma:SepCMA",
    "cma": "esker.strategies.cma:CMA",
}
METHODS = ("ask", "tell", "state_dict", "load_state_dict")


def find_strategy(name: str) -> Callable[..., Strategy]:
    """The class of a strategy, by name or by path `module:Class`. One that does not fit raises UsageError."""
    make: Callable[..., Strategy] = find_class("strategy", name, BUILT_IN, GROUP, METHODS)
    return make


def build_strategy(make: Callable[..., Strategy], center: Any, options: Mapping[str, Any]) -> Strategy:
    """A strategy that starts at `center`, with those of the options that its constructor names. Raises UsageError."""
    parameters = list(inspect.signature(make).parameters.values())[1:]  # the centre comes first
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name for p in parameters}
    chosen = {name: value for name, value in options.items() if takes_any or name in known}
    try:
        if options.get("restarts"):
            from esker.strategies.restarts import Restarts

            again: Any = functools.partial(make, center=center, **chosen)
            return Restarts(again, kind=options["restart_kind"], restarts=options["restarts"], seed=options["seed"])
        return make(center, **chosen)
    except UsageError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"strategy {getattr(make, '__name__', make)}: {error}") from error
