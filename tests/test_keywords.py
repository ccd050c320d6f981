"""Typed options: mypy knows every keyword of train, resume, sweep and Evolution, and refuses misspelt ones."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import esker
from esker.config.keywords import EvolutionOptions, ResumeChanges, TrainOptions
from esker.sweep.python import SweepOptions, sweep
from esker.tools.keywords import source

ROOT = Path(__file__).parent.parent
USER = """
from typing import Unpack
from keywords import ResumeChanges, TrainOptions
def train(env: str, **options: Unpack[TrainOptions]) -> None: ...
def resume(run: str, **changes: Unpack[ResumeChanges]) -> None: ...
train("CartPole-v1", population=8, lr=0.1, hidden=(8, 8), optimizer="adam", goal=None, seed=3, network=object())
resume("run", generations=5, workers=2)
train("CartPole-v1", populatoin=8)
train("CartPole-v1", population="many")
train("CartPole-v1", optimizer="adamm")
resume("run", sigma=0.1)
import esker
print([preset.name for preset in esker.presets("CartPole-v1")])
esker.presets(3)
"""


def test_file_is_what_the_options_say() -> None:
    written = (ROOT / "esker" / "config" / "keywords.py").read_text()
    lines = [line.strip() for line in written.splitlines() if line.strip()]
    expected = [line.strip() for line in source().splitlines() if line.strip()]
    hint = "python -m esker.tools.keywords > esker/config/keywords.py && ruff format esker/config/keywords.py"
    assert "".join(lines).replace(" ", "") == "".join(expected).replace(" ", ""), f"options changed; run: {hint}"


def test_mypy_takes_options_and_refuses_misspelt_ones(tmp_path: Path) -> None:
    shutil.copy(ROOT / "esker" / "config" / "keywords.py", tmp_path / "keywords.py")  # alone, it is checked in a second
    for part in ("__init__.py", "errors.py", "presets/__init__.py"):  # a package that can be called; the rest is Any
        (tmp_path / "esker" / part).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "esker" / part, tmp_path / "esker" / part)
    (tmp_path / "user.py").write_text(USER)
    checks = ["--no-error-summary", "--ignore-missing-imports", "--no-site-packages", "--cache-dir", os.devnull]
    command = [sys.executable, "-m", "mypy", *checks, "user.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout.splitlines()
    errors = [line for line in found if line.startswith("user.py") and ": error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == [8, 9, 10, 11, 14]
    assert "populatoin" in found[0]


def test_functions_take_these_options() -> None:
    kinds: list[tuple[Callable[..., object], type]] = [
        (esker.train, TrainOptions),
        (esker.resume, ResumeChanges),
        (esker.Run.resume, ResumeChanges),
        (esker.Evolution.__init__, EvolutionOptions),
        (sweep, SweepOptions),
    ]
    for function, kind in kinds:
        signature = inspect.signature(function)
        (keywords,) = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD]
        assert keywords.annotation == f"Unpack[{kind.__name__}]"


def test_evolution_takes_other_names_with_a_notice() -> None:
    evolution = esker.Evolution(
        torch.zeros(2),
        lambda x: 0.0,
        popsize=6,
        stdev_init=0.3,
        workers=0,
        quiet=True,
        noise="counter",  # type: ignore[call-arg]
    )
    assert (evolution.config.population, evolution.config.sigma) == (6, 0.3)
    assert "popsize = 6 is population = 6" in evolution.notices
    with pytest.raises(esker.UsageError, match="did you mean 'population'"):
        esker.Evolution(torch.zeros(2), lambda x: 0.0, populatoin=6)  # type: ignore[call-arg]
