"""Every example runs, with a small budget, and says what it should."""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import esker

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run an example in this process, as `python examples/NAME ARGUMENTS` would; returns what it printed."""
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
    assert re.findall(r"^generation (\d+) ", out, re.M) == ["1", "2"]


def test_processes_with_unequal_shares_that_exchange_rewards_end_as_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, str(EXAMPLES / "exchange_rewards.py"), "--shares", "5", "1.4", "--generations", "5"]
    out = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    ends = sorted(re.findall(r"process (\d) \((\d+) members\) ends with centre (\w+)", out))
    monkeypatch.syspath_prepend(str(EXAMPLES))
    there = importlib.import_module("exchange_rewards")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    start = nn.utils.parameters_to_vector(model.parameters()).detach()
    es = esker.OpenAIES(start, population=48, sigma=0.05, lr=0.03, seed=0)
    with torch.no_grad():
        for _ in range(5):
            es.tell([there.fitness(model, row) for row in es.ask().parameters()])
    alone = hashlib.sha256(es.center.numpy().tobytes()).hexdigest()[:12]
    assert ends == [("0", "38", alone), ("1", "10", alone)]  # 37.5 and 10.5 of 48


def test_own_workers_come_and_go_and_the_run_learns(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "own_workers.py"), "--generations", "12"]
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path)}
    out = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment).stdout
    scores = [float(value) for value in re.findall(r"score (\S+) by [123] workers", out)]
    assert len(scores) == 4
    assert scores[-1] > scores[0] / 2
    assert sorted(re.findall(r"the worker with (\S+) s a member evaluated [1-9]", out)) == ["0.002", "0.01"]


def test_own_worker_that_starts_slowly_after_the_last_generation_ends_with_the_run(tmp_path: Path) -> None:
    slowly = "import sys, time\nif any('spawn_main' in word for word in sys.orig_argv):\n    time.sleep(2)\n"
    (tmp_path / "sitecustomize.py").write_text(slowly)
    command = [sys.executable, str(EXAMPLES / "own_workers.py"), "--generations", "1"]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": path}
    out = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment).stdout
    assert "the worker with 0.01 s a member evaluated 0" in out


COMMANDS = sorted(path.name for path in EXAMPLES.glob("*.py") if path.name != "command.py")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_has_a_help_text_and_refuses_unknown_arguments_in_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(name, "--help", monkeypatch=monkeypatch, capsys=capsys)
    assert left.value.code == 0
    docstring = ast.get_docstring(ast.parse((EXAMPLES / name).read_text()))
    assert docstring.splitlines()[0] in capsys.readouterr().out
    with pytest.raises(SystemExit) as left:
        run(name, "--no-such-flag", monkeypatch=monkeypatch, capsys=capsys)
    assert left.value.code == 2
    assert capsys.readouterr().err == f"{name}: error: unrecognized arguments: --no-such-flag\n"


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("functions.py", ["-1"], "argument share: '-1' is not a number above 0"),
        ("numpy_model.py", ["many"], "argument generations: 'many' is not a whole number of at least 1"),
        ("half_cheetah_minimal.py", ["3", "0"], "argument steps: '0' is not a whole number of at least 1"),
        ("exchange_rewards.py", ["--shares", "1", "0"], "argument --shares: '0' is not a number above 0"),
        ("cartpole.py", ["--weights-path", "/"], "save_path '/' cannot be written"),
        ("cartpole.py", ["--workers", "-1"], "workers is -1"),
    ],
)
def test_wrong_arguments_of_an_example_are_refused_in_one_line(
    name: str, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(name, *arguments, monkeypatch=monkeypatch, capsys=capsys)
    error = capsys.readouterr().err
    assert (left.value.code, error.count("\n")) == (2, 1)
    assert error.startswith(f"{name}: error: {said}")


@pytest.mark.parametrize("settings", ["esker", "evolution-module"])
def test_cartpole_runs_and_saves_its_weights(example, tmp_path: Path, settings: str) -> None:  # type: ignore[no-untyped-def]
    weights = tmp_path / "cartpole.pt"
    workers = 1 if settings == "esker" else 0  # real processes once: the reward is defined in a script
    out = example("cartpole.py", "--weights-path", weights, "--settings", settings, "--iterations", 2, "--workers", workers)
    assert "stopped after generation 2: 2 generations done" in out
    assert list(torch.load(weights, weights_only=True)) == ["0.weight", "0.bias", "2.weight", "2.bias"]


@pytest.mark.parametrize("settings", ["esker", "evolution-module"])
def test_lunar_lander_runs_and_saves_its_weights(example, tmp_path: Path, settings: str) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("Box2D")
    weights = tmp_path / "lander.pt"
    out = example("lunar_lander.py", "-w", weights, "--settings", settings, "--iterations", 1, "--workers", 0)
    assert "stopped after generation 1: 1 generation done" in out
    assert torch.load(weights, weights_only=True)["4.weight"].shape == (4, 100)


@pytest.mark.parametrize("name", ["cartpole.py", "lunar_lander.py"])
def test_cuda_is_refused_in_one_line_where_there_is_none(example, name: str) -> None:  # type: ignore[no-untyped-def]
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(SystemExit):
        example(name, "-c", "--iterations", 1)
