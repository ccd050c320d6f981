"""Who steps a worker's environments: Gymnasium, native formulas or EnvPool; chosen once, opened in every worker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeVar

from esker.errors import UsageError
from esker.worlds.environments import Env, Environment
from esker.worlds.general import GymnasiumWorlds
from esker.worlds.native import gives_the_bits_of, open_native, refusal, unchecked
from esker.worlds.worlds import Watch, Worlds

Vectorizer = Literal["gymnasium", "native", "envpool"]
C = TypeVar("C", bound=Any)
INEXACT = "EnvPool steps the environments; episodes cannot be seeded, so this run is inexact (not reproducible)"


def open_worlds(
    vectorizer: Vectorizer, environment: Environment, rows: int, seed: int, watch: Watch, fresh: bool = False
) -> Worlds:
    """The worlds of one worker. If native ones are not available, Gymnasium's give the same bits."""
    if vectorizer == "envpool":
        from esker.worlds.envpool import EnvPoolWorlds

        return EnvPoolWorlds(environment, rows, seed)
    if vectorizer == "native" and covered(environment):
        return open_native(environment, rows)
    return GymnasiumWorlds(environment, watch, fresh)


def covered(environment: Environment) -> bool:
    """Whether native stepping covers an environment, in the versions that are installed here."""
    return refusal(environment) is None and unchecked(environment) is None


def exact_vectorizer(environment: Environment, fresh: bool = False) -> Vectorizer:
    """The fastest reproducible one: native if it covers the environment."""
    return "native" if covered(environment) and not fresh else "gymnasium"


def refuse_uncovered(config: Any, environment: Environment) -> None:
    """Raises UsageError where native stepping was requested for what it does not cover; needs no environment to be made."""
    if getattr(config, "vectorizer", None) == "native" and (why := refusal(environment)) is not None:
        raise UsageError(why)


def choose_vectorizer(config: C, environment: Environment, probe: Env) -> tuple[C, list[str]]:
    """Choose who steps; `auto` also considers EnvPool, which is never chosen without a notice.

    A requested vectoriser that does not fit raises UsageError.
    """
    asked = config.vectorizer
    refuse_uncovered(config, environment)
    exact = config.fresh_environments or config.deterministic
    if asked == "envpool" or (asked == "auto" and not covered(environment) and not exact):
        from esker.worlds.envpool import check_pool

        try:
            check_pool(environment, probe)
            return replace(config, vectorizer="envpool"), [INEXACT]
        except UsageError:
            if asked == "envpool":
                raise
    if asked == "gymnasium":
        return config, []
    chosen, notices = _confirm_native(environment, probe, config.fresh_environments, asked == "native")
    return replace(config, vectorizer=chosen), notices


def confirm_vectorizer(config: C, environment: Environment, probe: Env) -> tuple[C, list[str]]:
    """A resumed run's configuration: a run that was stepped natively may use Gymnasium on another machine."""
    if getattr(config, "vectorizer", None) != "native":
        return config, []
    chosen, notices = _confirm_native(environment, probe, fresh=False, asked=True)
    return replace(config, vectorizer=chosen), notices


def _confirm_native(environment: Environment, probe: Env, fresh: bool, asked: bool) -> tuple[Vectorizer, list[str]]:
    """Native stepping where it covers an environment and a few steps of it have the bits of Gymnasium's, else Gymnasium."""
    instead = "Gymnasium steps the environments: the same results in more time"
    if (package := unchecked(environment)) is not None and asked:
        return "gymnasium", [f"native stepping was not checked with {package}; {instead}"]
    if exact_vectorizer(environment, fresh) == "gymnasium":
        return "gymnasium", []
    if not gives_the_bits_of(environment, probe):
        return "gymnasium", [f"native stepping of {environment.name} computes other bits on this machine; {instead}"]
    return "native", []
