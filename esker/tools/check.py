"""`esker check`: whether an environment is supported and exact on reset, and how fast it is."""

from __future__ import annotations

import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from esker.config.build import read_values
from esker.errors import UsageError, named_line
from esker.policies.heads import head_for, refuse_whole_numbers
from esker.policies.observations import is_image
from esker.presets import for_environment
from esker.tools.observations import observation_faults
from esker.worlds.atari import Atari, sees_memory
from esker.worlds.environments import Env, Flattened, reset_is_exact, resolve, silence
from esker.worlds.limits import DEFAULT_LIMIT, time_limit

HERE = Path(__file__).resolve().parent.parent  # esker's own files
NO_LIMIT = (
    f"no time limit: training ends episodes after {DEFAULT_LIMIT:,} steps; set --max-episode-steps, "
    "or register the environment with max_episode_steps"
)


@dataclass(frozen=True)
class EnvironmentReport:
    """What was found."""

    environment: str
    notices: list[str]
    observation_space: str
    action_space: str
    observation_size: int
    image: bool
    network_outputs: int
    exact_on_used_instance: bool
    exact_on_fresh_instance: bool
    steps_per_second: float
    max_episode_steps: int | None
    preset: str | None
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return asdict(self)

    def lines(self) -> list[tuple[str, str]]:
        """For people."""
        if self.exact_on_used_instance:
            exact = "yes: an episode repeats from reset(seed) on a used instance"
        elif self.exact_on_fresh_instance:
            exact = "only on a fresh instance: add --fresh-environments for bit-identical runs"
        else:
            exact = "no: an episode does not repeat from its seed, so runs cannot be bit-identical"
        seen = "an image: --network nature-cnn, conv-lstm or linear" if self.image else f"{self.observation_size} numbers"
        return [
            ("environment", "; ".join([self.environment, *self.notices])),
            ("observations", f"{self.observation_space} → {seen}"),
            ("actions", f"{self.action_space} → {self.network_outputs} network outputs"),
            ("reset is exact", exact),
            ("speed", f"{self.steps_per_second:,.0f} steps/s in one process, random actions"),
            ("episode limit", f"{self.max_episode_steps:,} steps" if self.max_episode_steps else "none"),
            ("preset", self.preset or "none: the defaults are used"),
            *(("warning", text) for text in self.warnings),
        ]


def check_environment(name: str, kwargs: str = "{}", wrappers: tuple[str, ...] = ()) -> EnvironmentReport:
    """Check an environment. One that cannot be trained on raises UsageError."""
    environment, notices = resolve(name, kwargs=read_values(kwargs), wrappers=wrappers, atari=Atari())
    env = environment.make()
    refuse_whole_numbers(env.action_space)
    head = head_for(env.action_space)
    unflattened = env.env if isinstance(env, Flattened) else env
    try:
        used = reset_is_exact(env)
        with silence():
            fresh = used or reset_is_exact(environment.make(), environment.make())
        faults = observation_faults(env)
        speed = _speed(env)
    except (Exception, SystemExit) as error:
        raise UsageError(f"environment {name!r} fails when it is stepped: {named_line(error)}{_place(error)}") from error
    preset = None if sees_memory({"env_kwargs": environment.kwargs}) else for_environment(environment.name, "es")
    limits = [time_limit(env)]
    if environment.is_atari and environment.atari is not None:
        limits.append(environment.atari.max_steps(environment.kwargs))
    limit = min(filter(None, limits), default=None)
    assert env.observation_space.shape is not None
    return EnvironmentReport(
        environment=environment.name,
        notices=notices,
        observation_space=_brief(unflattened.observation_space),
        action_space=_brief(env.action_space),
        observation_size=int(np.prod(env.observation_space.shape)),
        image=is_image(env.observation_space),
        network_outputs=head.outputs,
        exact_on_used_instance=used,
        exact_on_fresh_instance=fresh,
        steps_per_second=speed,
        max_episode_steps=limit,
        preset=preset.name if preset else None,
        warnings=faults + ([] if limit else [NO_LIMIT]),
    )


def _place(error: BaseException) -> str:
    """Where a user's code raised: the innermost frame that belongs to no installed package."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and HERE not in Path(frame.filename).parents]
    return f" ({own[-1].filename}:{own[-1].lineno} in {own[-1].name})" if own else ""


def _brief(space: Any) -> str:
    """A space in a few words; Gymnasium prints every bound of a Box."""
    text = str(space)
    return text if len(text) < 80 else f"{type(space).__name__}{getattr(space, 'shape', '')} of {space.dtype}"


def _speed(env: Env, seconds: float = 1.0) -> float:
    env.reset(seed=0)
    actions = [env.action_space.sample() for _ in range(1000)]
    steps, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for action in actions[:100]:
            _, _, terminated, truncated, _ = env.step(action)
            steps += 1
            if terminated or truncated:
                env.reset()
    return steps / (time.perf_counter() - started)
