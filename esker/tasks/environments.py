"""Environments: from a name or a callable to a Gymnasium environment with flat observations."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import gymnasium as gym
import numpy as np

from esker.errors import RunError, UsageError, nearest

Env = gym.Env[Any, Any]
EXTRAS = {"mujoco": "mujoco", "box2d": "box2d", "ale_py": "atari", "shimmy": "atari"}


@dataclass(frozen=True)
class Environment:
    """How to make the environment: a registered id, `module:Id`, `module:make_env`, or a callable."""

    name: str
    factory: Callable[..., Env] | None = None
    kwargs: dict[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()
    max_episode_steps: int | None = None
    time_aware: bool = False

    def make(self, **extra: Any) -> Env:
        """A new environment. What the user must mend (unknown id, missing extra, bad arguments) raises UsageError."""
        env = self._bare(self.kwargs | extra)
        for path in self.wrappers:
            env = _import(path, "wrapper")(env)
        if self.time_aware:
            env = _time_aware(env)
        space = env.observation_space
        if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
            try:
                env = gym.wrappers.FlattenObservation(env)
            except NotImplementedError as error:
                raise UsageError(f"observations of {space} cannot be flattened; wrap the environment first") from error
            if not isinstance(env.observation_space, gym.spaces.Box):
                raise UsageError(f"observations of {space} have no fixed size; wrap the environment first")
        return env

    def _bare(self, kwargs: dict[str, Any]) -> Env:
        factory = self.factory or _callable(self.name)
        try:
            with warnings.catch_warnings():  # Gymnasium's notices about versions: said once, where ids are resolved
                warnings.simplefilter("ignore")
                if factory is None:
                    return gym.make(self.name, max_episode_steps=self.max_episode_steps, disable_env_checker=True, **kwargs)
                env = factory(**kwargs)
        except gym.error.DependencyNotInstalled as error:
            raise UsageError(_missing_extra(self.name, str(error))) from error
        except TypeError as error:
            raise UsageError(f"environment {self.name!r} does not take {kwargs or 'these arguments'}: {error}") from error
        if not isinstance(env, gym.Env):
            raise UsageError(f"{self.name!r} returned {type(env).__name__}; expected a gymnasium.Env")
        return env if self.max_episode_steps is None else gym.wrappers.TimeLimit(env, self.max_episode_steps)


def resolve(name: str, **options: Any) -> tuple[Environment, list[str]]:
    """The environment that a name stands for, and notices about what was translated. Unknown names raise UsageError."""
    if ":" in name:
        environment = Environment(name, **options)
        _callable(name)  # raises when the module does not import
        return environment, []
    known = _registered()
    newest = _newest(name, known)
    if newest is None:
        if name.startswith("ALE/") and not any(other.startswith("ALE/") for other in known):
            raise UsageError(f"environment {name!r} needs ale-py; pip install 'esker[atari]'")
        raise UsageError(f"unknown environment {name!r}{nearest(name, known)}")
    notices = [] if newest == name else [f"environment {name} is translated to {newest}, its newest version"]
    return Environment(newest, **options), notices


def with_factory(factory: Callable[..., Env], **options: Any) -> Environment:
    """The environment that a callable makes."""
    name = f"{getattr(factory, '__module__', '')}:{getattr(factory, '__qualname__', type(factory).__name__)}"
    return replace(Environment(name, **options), factory=factory)


def reset_is_exact(env: Env, other: Env | None = None) -> bool:
    """Whether reset(seed) repeats an episode on a used instance, or, given another new one, on two fresh instances."""
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(200)]

    def episode(instance: Env, seed: int = 1) -> list[Any]:
        seen: list[Any] = [instance.reset(seed=seed)[0]]
        for action in actions:
            observation, reward, terminated, truncated, _ = instance.step(action)
            seen += [observation, float(reward)]
            if terminated or truncated:
                break
        return seen

    first = episode(env)
    if other is None:
        episode(env, seed=2)
    second = episode(other or env)
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@contextlib.contextmanager
def tried(environment: Environment, timeout: float | None = None) -> Iterator[Env]:
    """An instance to look at before training; whatever it raises, or a hang past the timeout, becomes a RunError."""

    def too_long(number: int, frame: Any) -> None:
        raise TimeoutError(f"a first look at it took longer than {timeout:g} s")

    env = environment.make()
    timed = timeout is not None and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, too_long) if timed else None
    try:
        if timed and timeout is not None:
            signal.setitimer(signal.ITIMER_REAL, timeout)
        yield env
    except (UsageError, KeyboardInterrupt):
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        raise RunError(f"environment {environment.name} fails before training begins: {text}") from error
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        env.close()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Send what C libraries print (MuJoCo: one warning per environment made) nowhere."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, descriptor in zip((1, 2), saved, strict=True):
                os.dup2(descriptor, number)
                os.close(descriptor)


def _time_aware(env: Env) -> Env:
    """Gymnasium's wrapper: the share of the time limit that is over, 0 to 1, is one more number of the observation."""
    try:
        return gym.wrappers.TimeAwareObservation(env, normalize_time=True)
    except ValueError as error:
        text = "time_aware needs episodes of limited length, and this environment has no limit; add --max-episode-steps"
        raise UsageError(text) from error


def _registered() -> list[str]:
    with contextlib.suppress(ImportError):
        ale_py = importlib.import_module("ale_py")
        gym.register_envs(ale_py)
    return list(gym.registry)


def _newest(name: str, known: list[str]) -> str | None:
    """The name itself where Gymnasium maintains it, else the newest version of the same environment."""
    match = re.fullmatch(r"(.+)-v(\d+)", name)
    if match is None:
        return name if name in known else None
    base, version = match[1], int(match[2])
    atari = re.fullmatch(r"([A-Z]\w*?)(Deterministic|NoFrameskip)?", base)
    bases = [base] + ([f"ALE/{atari[1]}"] if atari else [])
    for candidate in bases:
        versions = sorted(
            int(other[len(candidate) + 2 :]) for other in known if re.fullmatch(re.escape(candidate) + r"-v\d+", other)
        )
        # Gymnasium still maintains the v4 MuJoCo environments beside v5: whoever names one means it.
        if versions and (version == versions[-1] or (name in known and version == 4)):
            return name
        if versions and version < versions[-1]:
            return f"{candidate}-v{versions[-1]}"
    return None


def _callable(name: str) -> Callable[..., Env] | None:
    """The callable behind `module:make_env`; None for a registered id, with its module imported."""
    if ":" not in name:
        return None
    module, attribute = name.split(":", 1)
    found = getattr(_module(module, f"environment {name!r}"), attribute, None)
    if not callable(found) and attribute not in gym.registry:
        known = [*vars(sys.modules[module]), *gym.registry]
        what = f"{module!r} defines no callable {attribute!r} and registers no such id"
        raise UsageError(f"environment {name!r}: {what}{nearest(attribute, known)}")
    return found if callable(found) else None


def _import(path: str, what: str) -> Callable[..., Any]:
    module, _, attribute = path.partition(":")
    found = getattr(_module(module, f"{what} {path!r}"), attribute, None) if attribute else None
    if not callable(found):
        raise UsageError(f"{what} {path!r} is not a callable; expected module:name")
    return found


def _module(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{what}: cannot import {name!r} ({error}); is it installed or in the current folder?") from error


def _missing_extra(name: str, message: str) -> str:
    spec = gym.registry.get(name)
    text = f"{getattr(spec, 'entry_point', '')} {message}".lower()
    extra = next((extra for module, extra in EXTRAS.items() if module in text), None)
    remedy = f"pip install 'esker[{extra}]'" if extra else message.splitlines()[0]
    return f"environment {name!r} needs a package that is not installed; {remedy}"
