"""Several runs as one batch on a device: every run's loop in a thread, one device for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from esker.algorithms.device import share_device
from esker.algorithms.loop import Outcome
from esker.algorithms.observer import Observer
from esker.engines.device_shared import BlockEngine
from esker.errors import RunError, first_line
from esker.runs import runner
from esker.runs.session import Session
from esker.system.torch_threads import one_torch_thread


class Member(threading.Thread):
    """One of the runs: its loop, and how it ended."""

    def __init__(self, session: Session, engine: BlockEngine, observer: Observer) -> None:
        super().__init__(name=f"run {session.folder.path}")
        self.session, self.engine, self.observer = session, engine, observer
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """The run, from its start to its end."""
        try:
            self.outcome = runner.run(self.session, self.observer, open_engine=lambda: self.engine)
        except BaseException as error:
            self.error = error
        finally:
            self.engine.close()


def run_together(
    sessions: Sequence[Session], observe: Callable[[Session], Observer], note: Callable[[str], None]
) -> list[Outcome]:
    """Run all sessions to their ends; returns why each ended. Runs that fail raise RunError when the others have ended."""
    with one_torch_thread():  # also in the threads that begin here, so that none of them changes another's number
        try:
            device = share_device([session.state for session in sessions], note)
        except BaseException:
            for session in sessions:
                session.folder.unlock()
                session.state.close()
            raise
        members = [Member(*pair, observe(pair[0])) for pair in zip(sessions, device.engines, strict=True)]
        for member in members:
            member.start()
        try:
            with runner.terminate_as_interrupt():
                device.serve()
        except KeyboardInterrupt:
            _join(members)
            paths = " ".join(str(session.folder.path) for session in sessions)
            raise KeyboardInterrupt(f"interrupted; continue with: esker resume {paths}") from None
        finally:
            _join(members)
    failed = [member for member in members if member.error is not None]
    if failed:
        raise RunError(
            "\n".join(f"{member.session.folder.path}: {first_line(member.error)}" for member in failed if member.error)
        )
    return [member.outcome for member in members if member.outcome is not None]


def _join(members: Sequence[Member]) -> None:
    for member in members:
        member.join()
