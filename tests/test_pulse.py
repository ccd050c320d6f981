"""Engines report the progress of the current generation to other threads."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from small_runs import QUICK

import esker
from esker.engines.engine import InlineEngine, Pulse
from esker.engines.local import LocalEngine


@pytest.mark.parametrize(("kind", "workers"), [(InlineEngine, 0), (LocalEngine, 2)])
def test_steps_of_a_generation_are_counted_while_it_runs(
    kind: type[Any], workers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    seen: list[Pulse] = []
    evaluate = kind.evaluate

    def watched(engine: Any, job: Any, plan: Any) -> None:
        over = threading.Event()

        def watch() -> None:
            while not over.is_set():
                if pulse := engine.pulse():
                    seen.append(pulse)
                time.sleep(0.001)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            evaluate(engine, job, plan)
        finally:
            over.set()
            watcher.join()
        assert engine.pulse() is None

    monkeypatch.setattr(kind, "evaluate", watched)
    options = QUICK | {"workers": workers, "generations": 1, "population": 200}
    run = esker.train("Acrobot-v1", run_dir=str(tmp_path / "run"), **options)
    steps = run.history[-1]["env_steps"]
    seen = [pulse for pulse in seen if pulse.of > 20]  # the last centre and the best are evaluated after it, alone
    assert [pulse.steps for pulse in seen] == sorted(pulse.steps for pulse in seen)
    assert 0 < seen[-1].steps <= steps
    assert any(0 < pulse.steps < steps for pulse in seen)
    assert {pulse.of for pulse in seen} == {202}
