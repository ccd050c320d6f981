"""Every example runs, with a small budget, and says what it should."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run an example in this process, as `python examples/NAME ARGUMENTS` would; answers what it printed."""
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    return lambda name, *arguments: run(name, *arguments, monkeypatch=monkeypatch, capsys=capsys)


def test_functions_get_smaller(example) -> None:  # type: ignore[no-untyped-def]
    out = example("functions.py", 0.1)
    values = re.findall(r"^(\w+), d = \d+: (\S+) -> (\S+)$", out, re.M)
    assert [name for name, _, _ in values] == ["sphere", "rosenbrock", "rastrigin"]
    assert all(float(after) < float(before) for _, before, after in values)


def test_a_numpy_network_learns_a_sine(example) -> None:  # type: ignore[no-untyped-def]
    errors = [float(value) for value in re.findall(r"error (\S+)", example("numpy_model.py", 60))]
    assert len(errors) == 5
    assert errors[-1] < errors[0] / 2


def test_a_batched_reward_learns_under_vmap(example) -> None:  # type: ignore[no-untyped-def]
    out = example("batched_vmap.py", "--iterations", 12)
    assert float(out.split("mean squared error ")[1]) < 0.2


def test_a_classifier_gains_on_a_score_without_gradient(example) -> None:  # type: ignore[no-untyped-def]
    scores = [float(value) for value in re.findall(r"(?:macro F1|held out) (\d\.\d+)", example("image_classifier.py", 6))]
    assert scores[2] > scores[0] + 0.02


def test_half_cheetah_fits_in_40_lines_and_runs(example) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("mujoco")
    assert len((EXAMPLES / "half_cheetah_minimal.py").read_text().splitlines()) <= 40
    out = example("half_cheetah_minimal.py", 2, 20)
    assert re.findall(r"^iteration (\d+) ", out, re.M) == ["1", "2"]


def test_processes_that_exchange_rewards_end_alike() -> None:
    path = EXAMPLES / "exchange_rewards.py"
    assert len(path.read_text().splitlines()) < 60
    out = subprocess.run([sys.executable, path, "2", "5"], capture_output=True, text=True, timeout=300, check=True).stdout
    digests = re.findall(r"process \d ends with centre (\w+)", out)
    assert len(digests) == 2
    assert digests[0] == digests[1]


@pytest.mark.parametrize("settings", ["esker", "evolution-module"])
def test_cartpole_runs_and_saves_its_weights(example, tmp_path: Path, settings: str) -> None:  # type: ignore[no-untyped-def]
    weights = tmp_path / "cartpole.pt"
    workers = 1 if settings == "esker" else 0  # real processes once: the reward is defined in a script
    out = example("cartpole.py", "--weights-path", weights, "--settings", settings, "--iterations", 2, "--workers", workers)
    assert "2 iterations: 2 generations done" in out
    assert list(torch.load(weights, weights_only=True)) == ["0.weight", "0.bias", "2.weight", "2.bias"]


@pytest.mark.parametrize("settings", ["esker", "evolution-module"])
def test_lunar_lander_runs_and_saves_its_weights(example, tmp_path: Path, settings: str) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("Box2D")
    weights = tmp_path / "lander.pt"
    out = example("lunar_lander.py", "-w", weights, "--settings", settings, "--iterations", 1, "--workers", 0)
    assert "1 iterations: 1 generations done" in out
    assert torch.load(weights, weights_only=True)["4.weight"].shape == (4, 100)


@pytest.mark.parametrize("name", ["cartpole.py", "lunar_lander.py"])
def test_cuda_is_refused_in_one_line_where_there_is_none(example, name: str) -> None:  # type: ignore[no-untyped-def]
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    import esker

    with pytest.raises(esker.UsageError, match="device 'cuda' cannot be used here"):
        example(name, "-c", "--iterations", 1)
