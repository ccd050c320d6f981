"""`esker doctor`: it tells the truth about this machine."""

from __future__ import annotations

import json
import os
from importlib import metadata
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from esker.cli import main
from esker.noise.fingerprint import fingerprint
from esker.tools import doctor


@pytest.fixture(scope="module")
def findings() -> list[doctor.Finding]:
    return doctor.examine()


def text(findings: list[doctor.Finding], name: str) -> str:
    return next(finding.text for finding in findings if finding.name == name)


def test_versions_are_those_installed(findings: list[doctor.Finding]) -> None:
    assert text(findings, "numpy") == np.__version__
    assert metadata.version("optuna") in text(findings, "sweep")


def test_the_fingerprint_is_that_of_runs(findings: list[doctor.Finding]) -> None:
    assert fingerprint(gym.make("CartPole-v1")) in text(findings, "fingerprint")


def test_cores_are_those_this_process_may_use(findings: list[doctor.Finding]) -> None:
    assert text(findings, "cores").startswith(f"{len(os.sched_getaffinity(0))} usable")


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    present = doctor.util.find_spec
    monkeypatch.setattr(doctor.util, "find_spec", lambda name: None if name == "wandb" else present(name))
    (wandb,) = [finding for finding in doctor._extras() if finding.name == "wandb"]
    assert (wandb.mark, wandb.text) == ("missing", "for --log wandb: pip install 'esker[wandb]'")


def test_a_display_is_named_where_there_is_one() -> None:
    assert doctor._display({"DISPLAY": ":7"}).text.startswith(":7")
    assert doctor._display({}).mark == "note"


def test_json_holds_every_finding(capsys: pytest.CaptureFixture[str], monkeypatch: Any, findings: Any) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: findings)
    assert main(["doctor", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert sum(len(section) for section in shown.values()) == len(findings)
    assert shown["machine"]["cores"]["mark"] == "ok"


def test_the_table_ends_with_a_verdict(capsys: pytest.CaptureFixture[str], monkeypatch: Any, findings: Any) -> None:
    lost = doctor.Finding("extras", "lost", "missing", "pip install 'esker[lost]'")
    monkeypatch.setattr(doctor, "examine", lambda: [*findings, lost])
    assert main(["doctor"]) == 0
    output = capsys.readouterr().out
    assert "pip install 'esker[lost]'" in output
    assert output.rstrip().endswith("missing; each line shows how to install it")
