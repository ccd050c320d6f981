"""An algorithm as one value, which a registry finds by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from esker.algorithms.loop import State
from esker.config.resume import RESUMABLE
from esker.worlds.environments import Env, Environment

if TYPE_CHECKING:
    from esker.tasks.episodes import Episodes

About = dict[str, Any]  # what a run began with: spaces, versions, numeric fingerprint


class Engine(Protocol):
    """What a state's `advance` works with; always closed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Workers:
    """What an algorithm needs of a cluster: workers (None: every CPU), perhaps a critic in its own process."""

    count: int | None
    critic: bool = False
    actors_train: bool = False  # workers train individuals besides rolling them out
    learns_in_loop: bool = False  # the process of the loop trains networks itself


@dataclass(frozen=True)
class Site:
    """Where workers open: the run's folder, the fingerprint they must share, and where notices go.

    `run` names engines that outlive this process, as a coordinator's do; `epoch` numbers its lives.
    """

    path: Path
    fingerprint: str | None
    note: Callable[[str], None]
    run: str | None = None
    epoch: int = 0


def as_it_is(config: Any, environment: Environment, probe: Env) -> tuple[Any, list[str]]:
    """A configuration that needs no look at the environment."""
    return config, []


def by_command(config: Any, path: Path) -> str:
    """How to continue a run that was interrupted or failed."""
    return f"continue with: esker resume {path}"


@dataclass(frozen=True)
class Algorithm:
    """Its name, its options, how its state starts, and what its workers are."""

    name: str
    config: type[Any]
    # The state before the first generation; `new`: of a run that begins, not of one that is resumed. Raises UsageError.
    start: Callable[[Any, Any, About, bool], State]
    # The task whose centre is a run's policy: for evaluation, rendering and export.
    # None: its model is not a policy.
    policy_task: Callable[[Any, Environment, About], Episodes] | None
    # The workers of a state, on this machine or on the cluster that this process is connected to.
    open: Callable[[Any, Site], Engine]
    workers: Callable[[Any], Workers]
    # How a configuration makes its environment.
    environment: Callable[[Any], dict[str, Any]]
    # What a configuration leaves open until the environment has been looked at; returns notices too.
    complete: Callable[[Any, Environment, Env], tuple[Any, list[str]]] = as_it_is
    commits_facts: bool = True  # otherwise a generation is committed as a snapshot
    # What replaces an environment, found again from a run's configuration and description. Raises UsageError.
    find: Callable[[Any, About], Any] | None = None
    resumable: frozenset[str] = RESUMABLE  # options that a resumed run may change
    remedy: Callable[[Any, Path], str] = by_command  # how to continue one that was interrupted or failed
