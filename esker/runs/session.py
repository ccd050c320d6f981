"""A session: a run that is ready to start or resume. `train`, `resume`, `Evolution` and coordinators make one each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esker.algorithms.algorithm import About, Algorithm, Engine, Site
from esker.algorithms.loop import State
from esker.algorithms.observer import Observer
from esker.config.device import device_name
from esker.errors import named_line
from esker.runs.about import check_fingerprint, compare_device, describe
from esker.runs.folder import RunFolder
from esker.runs.memory import MemoryRun
from esker.runs.paths import default_path
from esker.runs.recovery import catch_up
from esker.runs.request import Request
from esker.runs.trust import Trust
from esker.runs.warm_start import warm_start
from esker.worlds.environments import Environment, probed, reset_is_exact
from esker.worlds.limits import limited
from esker.worlds.vectorizers import confirm_vectorizer, refuse_uncovered


@dataclass
class Session:
    """A run folder, the state that its algorithm continues from, and notices for the user.

    `environment` is what members are evaluated on: an environment, or a user's model and reward.
    """

    algorithm: Algorithm
    environment: Any
    folder: RunFolder | MemoryRun
    state: State
    notices: list[str]

    def advice(self) -> str:
        """How to continue it after an interrupt or a failure."""
        if isinstance(self.folder, MemoryRun):
            return f"run() continues after the {self.state.generation} complete generations, which the model holds"
        return self.algorithm.remedy(self.state.config, self.folder.path)

    def open(self, observer: Observer) -> Engine:
        """The run's workers."""
        site = Site(self.folder.path, self.folder.about().get("fingerprint"), observer.note)
        return self.algorithm.open(self.state, site)


def start(request: Request, elsewhere: bool = False, trust: Trust = False) -> Session:
    """A new run, in a new folder. `elsewhere`: a coordinator on a cluster continues it."""
    algorithm, environment, notices = request.algorithm, request.environment, list(request.notices)
    refuse_uncovered(request.config, environment)
    with probed(environment, request.config.step_timeout) as probe:
        about = describe(probe)
        config, environment, capped = limited(request.config, environment, probe)
        config, silent = without_action_noise(request, config, about)
        notices += capped + silent
        config, chosen = algorithm.complete(config, environment, probe)
        if getattr(config, "on_device", False):
            about["device"] = device_name(config.device)
        notices += _doubts(config, probe)
    state = algorithm.start(config.elsewhere() if elsewhere else config, environment, about, True)
    notices += chosen + state.notices
    if config.init_from is not None:
        notices.append(warm_start(state, config.init_from, trust))
    path = Path(config.run_dir) if config.run_dir else default_path(environment.name, config.algo, config.seed)
    return Session(algorithm, environment, create(path, config, about, state), state, notices)


def _doubts(config: Any, probe: Any) -> list[str]:
    """What speaks against exact episodes. An environment that fails here is refused, unless failed members rank last."""
    if config.fresh_environments or not config.exact_resets:
        return []
    try:
        exact = reset_is_exact(probe)
    except Exception as error:
        if getattr(config, "on_error", "stop") != "worst":
            raise
        return [f"the environment failed while it was tried ({named_line(error)}): whether episodes repeat is not known"]
    return [] if exact else ["episodes do not repeat from their seed on a used environment: --fresh-environments helps"]


def without_action_noise(request: Request, config: Any, about: About) -> tuple[Any, list[str]]:
    """RLlib's dump has action noise for every environment, and its ES adds it to continuous actions only."""
    if "action_noise" not in request.derived or about["action_space"]["kind"] == "Box":
        return config, []
    return replace(config, action_noise=0.0), [
        "RLlib's action_noise_std has no effect here: it is for continuous (Box) actions"
    ]


def create(path: Path, config: Any, about: About, state: State) -> RunFolder:
    """The folder of a new run, locked, with its first snapshot. One that cannot be used raises UsageError."""
    folder = RunFolder.create(path, replace(config, run_dir=None), about)  # it can be moved: it does not name itself
    folder.lock()
    folder.checkpoint(state.snapshot(), latest=True)
    return folder


def resume(folder: RunFolder, algorithm: Algorithm, config: Any, environment: Any, notices: list[str]) -> Session:
    """A run that continues from its folder."""
    state = algorithm.start(config, environment, folder.about(), False)
    said = state.notices if algorithm.find is not None else []
    return Session(algorithm, environment, folder, state, notices + said + catch_up(algorithm, folder, state))


def check_machine(folder: RunFolder, config: Any, environment: Any) -> tuple[Any, list[str]]:
    """Refuse a machine that computes other bits, by a look at the environment; what it cannot step natively it need not.

    What takes an environment's place is compared when the state starts.
    """
    if not isinstance(environment, Environment):
        return config, []
    with probed(environment, config.step_timeout) as probe:
        notices = check_fingerprint(folder, probe, config.inexact) + compare_device(folder, config)
        stepped, chosen = confirm_vectorizer(config, environment, probe)
        return stepped, notices + chosen
