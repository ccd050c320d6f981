"""How a user's reward is called, and what it may return."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from esker.errors import UsageError, named_line
from esker.tasks.task import LARGEST, is_fitness

Function = Callable[..., Any]


class BadReward(ValueError):
    """A reward returned something that is not a fitness; the message says what was expected."""


@dataclass(frozen=True)
class Call:
    """A reward as `reward(model)`, `reward(model, weights=[…])` or `reward(weights=[…])`, with `seed=` if it takes one."""

    function: Function
    model: bool
    weights: bool
    seed: bool
    gradients: bool = False  # otherwise torch records nothing

    def __call__(self, model: Any, weights: Callable[[], Any], seed: int, options: Mapping[str, Any]) -> Any:
        with contextlib.nullcontext() if self.gradients else torch.no_grad():
            try:
                return self._call(model, weights, seed, options)
            except RuntimeError as error:
                if self.gradients or "does not require grad" not in str(error):
                    raise
                raise BadReward("the reward needs gradients, which are off in rewards; add gradients=True") from error

    def _call(self, model: Any, weights: Callable[[], Any], seed: int, options: Mapping[str, Any]) -> Any:
        keywords = dict(options)
        if self.weights:
            keywords["weights"] = weights()
        if self.seed:
            keywords.setdefault("seed", seed)
        return self.function(*((model,) if self.model else ()), **keywords)


def call_of(function: Function, options: Mapping[str, Any], name: str = "reward", gradients: bool = False) -> Call:
    """How to call a function, from its signature. One that cannot be called that way raises UsageError."""
    if not callable(function):
        raise UsageError(f"{name} is a {type(function).__name__}; expected a function that takes the model")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return Call(function, model=True, weights=False, seed=False, gradients=gradients)
    free = [p for p in signature.parameters.values() if not _bound(function, p.name)]
    keywords = {p.name for p in free if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    positional = [p for p in free if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    weights = "weights" in keywords
    model = not weights or any(p.name not in ("weights", "seed", *options) for p in positional)
    call = Call(function, model=model, weights=weights, seed="seed" in keywords, gradients=gradients)
    _check(call, signature, {}, name)
    if options:
        _check(call, signature, options, name)
    return call


def accepts(function: Function, name: str) -> bool:
    """Whether a function can be given a keyword of this name; False if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any((p.name == name and p.kind in kinds) or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)


def _bound(function: Function, name: str) -> bool:
    return isinstance(function, functools.partial) and name in function.keywords


def _check(call: Call, signature: inspect.Signature, options: Mapping[str, Any], name: str) -> None:
    keywords = {**options, **dict.fromkeys(["weights"] * call.weights + ["seed"] * call.seed)}
    try:
        signature.bind(*((None,) if call.model else ()), **keywords)
    except TypeError as error:
        asked = ", ".join(["model"] * call.model + [f"{key}=…" for key in keywords])
        takes = ", ".join(signature.parameters)
        raise UsageError(
            f"{name} {label(call.function)}({takes}) cannot be called as {name}({asked}): {error}; "
            "bind its other arguments with functools.partial"
        ) from None


def label(function: Function) -> str:
    """A name for messages."""
    if isinstance(function, functools.partial):
        return label(function.func)
    return getattr(function, "__qualname__", None) or type(function).__name__


def number(value: Any, device: torch.device) -> float:
    """A reward's result as a number. Anything else raises BadReward."""
    if value is None:
        raise BadReward("reward returned None; expected a number (is a `return` missing?)")
    if isinstance(value, torch.Tensor):
        _check_device(value, device, "reward")
        value = value.detach()
    size = getattr(value, "size", 1)
    count = value.numel() if isinstance(value, torch.Tensor) else size if isinstance(size, int) else 1
    if count != 1:
        raise BadReward(f"reward returned {count} values; expected one number (take their mean or sum)")
    try:
        result = float(value.item() if isinstance(value, np.ndarray | np.generic) else value)
    except Exception as error:  # a user's object raises what it likes
        raise BadReward(f"reward returned a {type(value).__name__}; expected a number ({named_line(error)})") from None
    if not is_fitness(result):
        raise BadReward(f"reward returned {result}; expected a finite number below {LARGEST:g}")
    return result


def numbers(value: Any, count: int, device: torch.device) -> torch.Tensor:
    """A batched reward's result as float64 numbers on the CPU, infinities included. Anything else raises BadReward."""
    if value is None:
        raise BadReward("reward_batch returned None; expected a tensor with a number for each member")
    if isinstance(value, torch.Tensor):
        _check_device(value, device, "reward_batch")
    try:
        found = torch.as_tensor(value).detach().cpu()
        result = found.real.to(torch.float64)
    except Exception:  # a user's object raises what it likes
        raise BadReward(f"reward_batch returned a {type(value).__name__}; expected a tensor of {count} numbers") from None
    if found.is_complex() or found.layout != torch.strided:
        kind = "complex numbers" if found.is_complex() else f"a {found.layout} tensor"
        raise BadReward(f"reward_batch returned {kind}; expected a dense tensor of {count} real numbers")
    if result.shape != (count,):
        raise BadReward(f"reward_batch returned shape {tuple(result.shape)} for {count} members; expected ({count},)")
    return result


def _check_device(value: torch.Tensor, device: torch.device, name: str) -> None:
    """Refuse a result on another device than the evaluation's or the CPU, which would cost a hidden copy."""
    if value.device.type not in ("cpu", device.type) or (value.device.type == device.type and value.device != device):
        raise BadReward(f"{name} returned a tensor on {value.device}; expected it on {device}, where members are evaluated")
