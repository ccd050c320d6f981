"""What user code may return, raise and be: strange values, strange errors, and an environment with a drawn defect."""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces as s


class Raises(Exception):
    """Has no text: its `__str__` and `__repr__` raise."""

    def __str__(self) -> str:
        raise LookupError("no text")

    __repr__ = __str__


class Stubborn:
    """Neither number, nor text, nor truth, nor length."""

    def _refuse(self, *arguments: Any) -> Any:
        raise ZeroDivisionError("stubborn")

    __float__ = __str__ = __repr__ = __bool__ = __len__ = __iter__ = __add__ = __radd__ = __array__ = __eq__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Words:
    """A number whose conversion returns something else."""

    def __float__(self) -> Any:
        return "three"

    def __bool__(self) -> Any:
        return 3


VALUES: list[Callable[[], Any]] = [
    lambda: None, lambda: "", lambda: "3", lambda: "high\nand low", lambda: b"3", lambda: True, lambda: 3,
    lambda: -(10**400), lambda: float("nan"), lambda: float("inf"), lambda: -float("inf"), lambda: 1e308, lambda: -1e308,
    lambda: 1e-320, lambda: 2j, lambda: np.complex64(2j), lambda: decimal.Decimal("sNaN"), lambda: decimal.Decimal("3"),
    Stubborn, Words, object, lambda: [], lambda: {}, lambda: [1.0], lambda: [1.0, 2.0], lambda: [None],
    lambda: [[1.0], [2.0, 3.0]], lambda: {"a": 1}, lambda: np.zeros(0), lambda: np.ones(1), lambda: np.ones((1, 1)),
    lambda: np.ones(2), lambda: np.ones((2, 2)), lambda: np.array(["a", "b"]), lambda: np.array([None, 1]),
    lambda: np.float16(70000), lambda: np.datetime64("2026"), lambda: np.array([np.nan, 1.0]), lambda: np.array([1j, 2]),
    lambda: np.full(2, 1e308), lambda: np.uint8(3), lambda: torch.ones(()), lambda: torch.ones(2), lambda: torch.ones(1, 2),
    lambda: torch.zeros(0), lambda: torch.tensor(1j), lambda: torch.ones(2, requires_grad=True),
    lambda: torch.ones((), requires_grad=True) * 2, lambda: torch.tensor([1.0, torch.nan]),
    lambda: torch.ones(2, dtype=torch.bool), lambda: torch.ones(2, device="meta"), lambda: torch.ones(2).to_sparse(),
    lambda: iter([1.0]), lambda: (1.0 for _ in range(2)), lambda: lambda: 1.0, lambda: ValueError("returned"),
    lambda: float,
]  # fmt: skip
ERRORS: list[Callable[[], BaseException]] = [
    lambda: ValueError("bad\nworse"), ValueError, Raises, StopIteration, lambda: StopIteration(3), SystemExit,
    lambda: SystemExit("bye"), lambda: KeyError("missing"), lambda: AttributeError("none", name="x", obj=Stubborn()),
    AssertionError, MemoryError, RecursionError, NotImplementedError, lambda: RuntimeError("does not require grad"),
    lambda: OSError(28, "no space"), TimeoutError, lambda: ExceptionGroup("several", [ValueError("one")]), EOFError,
    Warning, lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), ArithmeticError,
    lambda: TypeError("\x1b[31mred\x00"),
]  # fmt: skip


@dataclass
class Defect:
    """From call `at` of `place` on (counted over all instances), return `value()` or raise `error()`; both None: nothing.

    `part` is which of the returned things is replaced; None: all of them together.
    """

    place: str
    at: int = 0
    error: Callable[[], BaseException] | None = None
    value: Callable[[], Any] | None = None
    part: int | None = None
    thrown: list[BaseException] = field(default_factory=list)
    calls: Any = field(default_factory=itertools.count)

    def of(self, place: str, usual: Any) -> Any:
        """What a call returns in place of what it usually would."""
        if place != self.place or next(self.calls) < self.at:
            return usual
        if self.error is not None:
            self.thrown.append(self.error())
            raise self.thrown[-1]
        if self.value is None:
            return usual
        if self.part is None or not isinstance(usual, tuple):
            return self.value()
        return tuple(self.value() if number == self.part else one for number, one in enumerate(usual))


OBSERVATIONS: list[Callable[[], Any]] = [
    lambda: s.Box(-1, 1, (2,), np.float32), lambda: s.Box(-np.inf, np.inf, (3,), np.float64), lambda: s.Box(-1, 1, ()),
    lambda: s.Box(-1, 1, (0,)), lambda: s.Box(0, 255, (3,), np.uint8), lambda: s.Box(0, 255, (4, 4), np.uint8),
    lambda: s.Box(-3, 3, (2, 2), np.int8), lambda: s.Discrete(1), lambda: s.Discrete(3, start=-5), lambda: s.MultiBinary(3),
    lambda: s.MultiBinary([2, 2]), lambda: s.MultiDiscrete([2, 3]), lambda: s.MultiDiscrete([[2, 3], [1, 2]]),
    lambda: s.Text(3), lambda: s.Dict(a=s.Discrete(2), b=s.Box(-1, 1, (2,))), lambda: s.Dict(), lambda: s.Tuple(()),
    lambda: s.Dict(t=s.Text(3)), lambda: s.Tuple((s.Discrete(2), s.MultiBinary(2))), lambda: s.Sequence(s.Discrete(2)),
    lambda: s.Box(-1, 1, (1,), np.float16), lambda: s.Graph(s.Box(-1, 1, (2,)), None),
    lambda: s.OneOf((s.Discrete(2), s.Box(-1, 1, (1,)))), lambda: s.Discrete(10**9),
]  # fmt: skip
ACTIONS: list[Callable[[], Any]] = [
    lambda: s.Discrete(2), lambda: s.Discrete(1), lambda: s.Discrete(3, start=7), lambda: s.Box(-1, 1, (2,), np.float32),
    lambda: s.Box(-np.inf, np.inf, (2,), np.float64), lambda: s.Box(0, np.inf, (1,)), lambda: s.Box(-1, 1, ()),
    lambda: s.Box(-1, 1, (0,)), lambda: s.Box(0, 255, (2,), np.uint8), lambda: s.Box(-3, 3, (2, 2), np.int8),
    lambda: s.MultiBinary(2), lambda: s.MultiBinary([2, 1]), lambda: s.MultiDiscrete([2, 1]),
    lambda: s.MultiDiscrete([[2], [3]]), lambda: s.MultiDiscrete([2, 2], start=[5, -5]), lambda: s.Dict(a=s.Discrete(2)),
    lambda: s.Tuple((s.Discrete(2),)), lambda: s.Text(3), lambda: s.Sequence(s.Discrete(2)), lambda: s.Discrete(10**9),
    lambda: s.Box(-1e308, 1e308, (1,), np.float64),
]  # fmt: skip


class Odd(gym.Env[Any, Any]):
    """Episodes of three steps (or without end) in any spaces, with a defect."""

    def __init__(self, defect: Defect, observation: Any, action: Any, endless: bool = False) -> None:
        defect.of("init", None)
        self.defect, self.endless, self.at = defect, endless, 0
        self.observation_space, self.action_space = observation, action
        if defect.place == "spaces":
            name = ("observation_space", "action_space")[(defect.part or 0) % 2]
            self.__dict__.pop(name)
            if defect.value is not None:
                setattr(self, name, defect.value())

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return self.defect.of("reset", (self._observed(), {}))

    def step(self, action: Any) -> Any:
        self.at += 1
        return self.defect.of("step", (self._observed(), 1.0, self.at >= 3 and not self.endless, False, {}))

    def close(self) -> None:
        self.defect.of("close", None)

    def _observed(self) -> Any:
        return self.observation_space.sample()


present = Defect("nowhere")  # of what is named by its path, `strange:shaping`


def shaping(fitness: Any) -> Any:
    """The fitness itself, or the defect."""
    return present.of("shaping", fitness)


def activation(x: Any) -> Any:
    """The tangent, or the defect."""
    return present.of("activation", np.tanh(x))


class Watcher:
    """A logger or an observer with a defect."""

    def begin(self, config: Any, folder: Any, rows: Any) -> Any:
        return present.of("begin", None)

    def generation(self, row: Any, returns: Any = None) -> Any:
        return present.of("generation", None)

    def note(self, text: str) -> Any:
        return present.of("note", None)

    def end(self, reason: str) -> Any:
        return present.of("end", None)
