"""Environments given as objects: what Gymnasium can make again is known by its id, anything else is copied."""

from __future__ import annotations

from typing import Any

import cloudpickle
import gymnasium as gym

from esker.errors import UsageError, named_line

REMEDY = "pass a function that makes it, as env=lambda: MyEnv(…)"


class Copies:
    """Makes copies of a given environment."""

    def __init__(self, data: bytes, kind: type[Any]) -> None:
        self.data = data
        self.__module__ = kind.__module__
        self.__qualname__ = f"<instance of {kind.__qualname__}>"

    def __call__(self, **arguments: Any) -> gym.Env[Any, Any]:
        """A copy. Arguments raise TypeError, since the environment is made already."""
        if arguments:
            raise TypeError(f"it was given as an instance, which takes no arguments: {', '.join(arguments)}")
        return cloudpickle.loads(self.data)


def from_instance(env: gym.Env[Any, Any]) -> tuple[str | Copies, dict[str, Any]]:
    """How to make an environment again: its id and arguments, or copies of it. What cannot be copied raises UsageError."""
    spec = env.spec
    if spec is not None and not spec.additional_wrappers and spec.id in gym.registry:
        arguments = {name: value for name, value in spec.kwargs.items() if value is not None}
        known = gym.registry[spec.id].kwargs
        return spec.id, {name: value for name, value in arguments.items() if known.get(name) != value}
    kind = type(env.unwrapped)
    try:
        data = cloudpickle.dumps(env)
        copied = cloudpickle.loads(data)
    except Exception as error:  # whatever an environment's parts raise
        text = named_line(error)
        raise UsageError(f"env is an instance of {kind.__name__} that cannot be copied ({text}); {REMEDY}") from error
    if not isinstance(copied, gym.Env):
        raise UsageError(f"env is an instance of {kind.__name__} whose copy is not an environment; {REMEDY}")
    return Copies(data, kind), {}
