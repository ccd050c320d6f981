"""Environments: from a name or a callable to a Gymnasium environment with flat observations, or images."""

from __future__ import annotations

import contextlib
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

from esker.errors import RunError, UsageError, named_line, nearest
from esker.policies.observations import holds_images, is_image, shown
from esker.system.imports import import_callable, import_module
from esker.worlds.atari import PREFIX, Atari, register_games
from esker.worlds.mujoco_log import hear_mujoco

Env = gym.Env[Any, Any]
START = 30.0  # seconds beyond the limit of a step that an environment may take to be made
MOST_NUMBERS = 10_000_000  # of a flattened observation
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
    atari: Atari | None = None
    flat: bool = False  # images, too, become vectors

    def make(self, **extra: Any) -> Env:
        """A new environment. A user's mistake (unknown id, missing extra, bad arguments) raises UsageError."""
        env = self._atari(extra) if self.is_atari else self._bare(self.kwargs | extra, self.max_episode_steps)
        for path in self.wrappers:
            env = _wrapped(env, path)
        if self.time_aware:
            _refuse_large(env.observation_space)
            env = _time_aware(env)
        return env if is_image(env.observation_space) and not self.flat else _flattened(env)

    def make_beside(self, first: Env | None) -> Env:
        """A new environment for the process that has `first`. Gymnasium's own MuJoCo worlds then read one model.

        A step only reads the model; one for all keeps more environments in a core's cache. What others make is left alone:
        it may change its model.
        """
        env = self.make()
        if first is not None and self.is_plain_mujoco and env.unwrapped.render_mode is None:
            import mujoco

            world: Any = env.unwrapped
            world.model = first.unwrapped.model  # type: ignore[attr-defined]
            world.data = mujoco.MjData(world.model)
        return env

    @property
    def is_plain_mujoco(self) -> bool:
        """Whether it is one of Gymnasium's own MuJoCo worlds, as Gymnasium makes it."""
        if self.factory is not None or self.wrappers or self.name not in gym.registry:
            return False
        return str(gym.registry[self.name].entry_point).startswith("gymnasium.envs.mujoco")

    @property
    def is_atari(self) -> bool:
        """Whether frames are preprocessed: a game of ALE whose screen is observed, not its memory."""
        return self.atari is not None and self.name.startswith(PREFIX) and self.kwargs.get("obs_type") != "ram"

    def _atari(self, extra: dict[str, Any]) -> Env:
        assert self.atari is not None
        env = self._bare(self.atari.arguments | self.kwargs | extra, None)
        try:
            env = self.atari.wrap(env)
        except (gym.error.DependencyNotInstalled, ImportError) as error:
            raise UsageError(f"environment {self.name!r} needs OpenCV; pip install 'esker[atari]'") from error
        except (ValueError, TypeError) as error:
            raise UsageError(f"environment {self.name!r} cannot be preprocessed: {error}") from error
        return env if self.max_episode_steps is None else gym.wrappers.TimeLimit(env, self.max_episode_steps)

    def _bare(self, kwargs: dict[str, Any], limit: int | None) -> Env:
        factory = self.factory or _callable(self.name)
        if self.is_plain_mujoco or "mujoco" in sys.modules:
            hear_mujoco()
        if self.name.startswith(PREFIX):
            register_games()
        try:
            with warnings.catch_warnings():  # Gymnasium's notices about versions: shown once, when ids are resolved
                warnings.simplefilter("ignore")
                if factory is None:
                    return gym.make(self.name, max_episode_steps=limit, disable_env_checker=True, **kwargs)
                env = factory(**kwargs)
        except gym.error.DependencyNotInstalled as error:
            raise UsageError(_missing_extra(self.name, str(error))) from error
        except TimeoutError:
            raise
        except TypeError as error:
            raise UsageError(f"environment {self.name!r} does not take {kwargs or 'these arguments'}: {error}") from error
        except (Exception, SystemExit) as error:  # constructors raise whatever they like
            text = named_line(error)
            rom = self.name.startswith(PREFIX) and isinstance(error, OSError)
            hint = "; ale-py includes its ROMs: unset ALE_ROMS_DIR, or pip install --force-reinstall ale-py" if rom else ""
            raise UsageError(f"environment {self.name!r} cannot be made: {text}{hint}") from error
        if not isinstance(env, gym.Env):
            raise UsageError(f"{self.name!r} returned {type(env).__name__}; expected a gymnasium.Env")
        return env if limit is None else gym.wrappers.TimeLimit(env, limit)


def _wrapped(env: Env, path: str) -> Env:
    """The environment inside a wrapper. One that fails, or does not return an environment, raises UsageError."""
    wrapper = import_callable(path, "wrapper")
    try:
        result = wrapper(env)
    except (Exception, SystemExit) as error:  # wrappers raise whatever they like
        raise UsageError(f"wrapper {path!r} fails: {named_line(error)}") from error
    if not isinstance(result, gym.Env):
        raise UsageError(f"wrapper {path!r} returned {type(result).__name__}; expected a gymnasium.Env")
    return result


class Flattened(gym.wrappers.FlattenObservation[Any, Any, Any]):
    """Observations flattened by esker, so that policies later take the user's unflattened observations."""


def _flattened(env: Env) -> Env:
    """The environment with its observations as one vector. What has no fixed size, or images inside, raises UsageError."""
    space = env.observation_space
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        return env
    if holds_images(space) and not is_image(space):
        raise UsageError(
            f"observations are a {type(space).__name__} with images inside, which no network supports; "
            "pick one part with a wrapper, such as gymnasium.wrappers.TransformObservation"
        )
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple) and not space.spaces:
        raise UsageError(f"observations of {shown(space)} are empty; expected at least one part")
    try:
        _refuse_large(space)
        env = Flattened(env)
    except NotImplementedError as error:
        raise UsageError(f"observations of {shown(space)} cannot be flattened; wrap the environment first") from error
    if not isinstance(env.observation_space, gym.spaces.Box):
        raise UsageError(f"observations of {shown(space)} have no fixed size; wrap the environment first")
    return env


def _refuse_large(space: gym.Space[Any]) -> None:
    """Refuse observations of too many numbers, before an array of them is made. Raises UsageError."""
    if space.is_np_flattenable and (size := gym.spaces.flatdim(space)) > MOST_NUMBERS:
        raise UsageError(
            f"observations of {shown(space)} are {size:,} numbers; expected at most {MOST_NUMBERS:,}: wrap them"
        )


def resolve(name: str, **options: Any) -> tuple[Environment, list[str]]:
    """The environment of a name, and notices about what was translated. Unknown names raise UsageError."""
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
    if newest.startswith(PREFIX) and "-ram" in name:
        raise UsageError(
            f'environment {name!r} shows the game\'s memory; use {newest} with --env-kwargs \'{{"obs_type": "ram"}}\''
        )
    notices = [] if newest == name else [f"environment {name} is translated to {newest}, its newest version"]
    return Environment(newest, **options), notices


def with_factory(factory: Callable[..., Env], **options: Any) -> Environment:
    """The environment that a callable makes."""
    name = f"{getattr(factory, '__module__', '')}:{getattr(factory, '__qualname__', type(factory).__name__)}"
    return replace(Environment(name, **options), factory=factory)


# Gymnasium's environments that repeat an episode from its seed on a new instance only, as `esker check` finds.
INEXACT_RESETS = frozenset({"BipedalWalker-v3", "BipedalWalkerHardcore-v3"})


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
def probed(environment: Environment, timeout: float | None = None) -> Iterator[Env]:
    """An instance to look at before training; whatever it raises, or a hang past the timeout, becomes a RunError."""

    limit = timeout or 0.0

    def too_long(number: int, frame: Any) -> None:
        what = "making it" if env is None else "a first look at it"
        raise TimeoutError(f"{what} took longer than {limit + START if env is None else limit:g} s")

    timed = timeout is not None and threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, too_long) if timed else None
    env = None
    try:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, limit + START)
        with silence() if environment.is_plain_mujoco else contextlib.nullcontext():  # XML warnings do not help the user
            env = environment.make()
        if timed:
            signal.setitimer(signal.ITIMER_REAL, limit)
        yield env
    except (UsageError, KeyboardInterrupt):
        raise
    except (Exception, SystemExit) as error:
        text = named_line(error)
        cause = None if isinstance(error, StopIteration) else error  # with that cause, contextlib would raise it again
        raise RunError(f"environment {environment.name} fails before training begins: {text}") from cause
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        if env is not None:
            close_quietly(env)


def close_quietly(env: Env) -> None:
    """Close an environment that is no longer needed, whatever its `close` raises."""
    with contextlib.suppress(Exception, SystemExit):
        env.close()


def bare_step(env: Env) -> tuple[Callable[[Any], Any], int | None]:
    """The step below Gymnasium's own bookkeeping, and the time limit that its caller must keep instead.

    `gymnasium.make` puts TimeLimit and OrderEnforcing around an environment: a counter and an assertion, which cost
    three Python calls per step. Slots count steps themselves. Any wrapper outside of these two is left where it is.
    """
    limit = None
    if type(env) is gym.wrappers.TimeLimit:
        limit, env = env._max_episode_steps, env.env
    if type(env) is gym.wrappers.OrderEnforcing:
        env = env.env
    return env.step, limit


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard what C libraries print (MuJoCo: one warning per environment made)."""
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
    """Gymnasium's wrapper: appends the elapsed share of the time limit, 0 to 1, to the observation."""
    try:
        return gym.wrappers.TimeAwareObservation(env, normalize_time=True)
    except ValueError as error:
        text = "time_aware needs episodes of limited length, and this environment has no limit; add --max-episode-steps"
        raise UsageError(text) from error


def _registered() -> list[str]:
    register_games()
    return list(gym.registry)


def _newest(name: str, known: list[str]) -> str | None:
    """The name itself where Gymnasium maintains it, else the newest version of the same environment."""
    match = re.fullmatch(r"(.+)-v(\d+)", name)
    if match is None:
        return name if name in known else None
    base, version = match[1], int(match[2])
    atari = re.fullmatch(r"([A-Z]\w*?)(-ram|-ramDeterministic|-ramNoFrameskip|Deterministic|NoFrameskip)?", base)
    bases = [base] + ([f"{PREFIX}{atari[1]}"] if atari else [])
    known = [other for other in known if other.startswith(PREFIX) or not _is_old_game(other)]
    for candidate in bases:
        versions = sorted(
            int(other[len(candidate) + 2 :]) for other in known if re.fullmatch(re.escape(candidate) + r"-v\d+", other)
        )
        # Gymnasium still maintains the v4 MuJoCo environments besides v5: a v4 id means v4.
        if versions and (version == versions[-1] or (name in known and version == 4)):
            return name
        if versions and version < versions[-1]:
            return f"{candidate}-v{versions[-1]}"
    return None


def _is_old_game(name: str) -> bool:
    """Whether an id is one that ale-py registers only for compatibility (unlike Gymnasium's Blackjack-v1)."""
    return "ale_py" in str(gym.registry[name].entry_point)


def _callable(name: str) -> Callable[..., Env] | None:
    """The callable behind `module:make_env`; None for a registered id, with its module imported."""
    if ":" not in name:
        return None
    module, attribute = name.split(":", 1)
    found = getattr(import_module(module, f"environment {name!r}"), attribute, None)
    if not callable(found) and attribute not in gym.registry:
        known = [*vars(sys.modules[module]), *gym.registry]
        what = f"{module!r} defines no callable {attribute!r} and registers no such id"
        raise UsageError(f"environment {name!r}: {what}{nearest(attribute, known)}")
    return found if callable(found) else None


def _missing_extra(name: str, message: str) -> str:
    spec = gym.registry.get(name)
    text = f"{getattr(spec, 'entry_point', '')} {message}".lower()
    extra = next((extra for module, extra in EXTRAS.items() if module in text), None)
    remedy = f"pip install 'esker[{extra}]'" if extra else message.splitlines()[0]
    return f"environment {name!r} needs a package that is not installed; {remedy}"
