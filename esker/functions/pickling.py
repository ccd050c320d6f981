"""Whether a user's objects can be sent to worker processes, and which of them cannot."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle

from esker.errors import UsageError, named_line
from esker.functions.reward import label

REMEDY = (
    "make it inside the function instead, or evaluate without processes: workers=0 (in this process) or executor='threads'"
)


def check_sendable(model: Any, reward: Callable[..., Any]) -> None:
    """Refuse what cannot be pickled, by name. Raises UsageError."""
    for what, thing in (("the model", model), (f"reward {label(reward)}", reward)):
        error = _failure(thing)
        if error is not None:
            culprit = next((f"{name} is a {type(part).__name__}" for name, part in _inside(thing) if _failure(part)), None)
            reason = culprit or named_line(error)
            raise UsageError(f"{what} cannot be sent to worker processes ({reason}); {REMEDY}")


def _failure(thing: Any) -> Exception | None:
    try:
        cloudpickle.dumps(thing)
    except Exception as error:
        return error
    return None


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    """The objects inside an object, each with a readable name; innermost first."""
    if isinstance(thing, functools.partial):
        for number, part in enumerate(thing.args):
            yield f"bound argument {number}", part
        for name, part in thing.keywords.items():
            yield f"bound argument {name!r}", part
        yield from _inside(thing.func)
    elif inspect.ismethod(thing):
        yield from _inside(thing.__self__)
        yield "the object it is a method of", thing.__self__
    elif inspect.isfunction(thing):
        captured = inspect.getclosurevars(thing)
        for name, part in {**captured.nonlocals, **captured.globals}.items():
            yield f"its variable {name!r}", part
    else:
        for name, part in getattr(thing, "__dict__", {}).items():
            yield f"attribute {name!r} of a {type(thing).__name__}", part
