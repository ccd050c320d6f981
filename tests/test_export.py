"""`esker export`: what is written acts as the policy does, for every network, head and form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.config.options import ESConfig
from esker.errors import RunError
from esker.policies.choose import network_for
from esker.policies.heads import head_for
from esker.policies.normalizer import Normalizer
from esker.policies.policy import Policy
from esker.tools.export import EPISODE, actions_of, compare, own_actions, sample_observations
from esker.tools.torch_policies import files

BOX = gym.spaces.Box(np.array([-1.0, -2.0], dtype=np.float32), np.array([1.0, 3.0], dtype=np.float32))
VECTOR = gym.spaces.Box(-np.inf, np.inf, (5,))
HEADS: dict[str, tuple[gym.Space[Any], dict[str, Any]]] = {
    "discrete": (gym.spaces.Discrete(4, start=2), {}),
    "multi-discrete": (gym.spaces.MultiDiscrete(np.array([[2, 3], [4, 2]])), {}),
    "multi-binary": (gym.spaces.MultiBinary([2, 2]), {}),
    "direct": (BOX, {}),
    "tanh": (BOX, {"mode": "tanh"}),
    "binned": (BOX, {"mode": "binned", "bins": 7}),
}


def policy_with(config: dict[str, Any], actions: gym.Space[Any], space: gym.Space[Any] = VECTOR, **head: Any) -> Policy:
    """A policy with random parameters of some size, so that actions vary."""
    rng = np.random.default_rng(3)
    chosen = head_for(actions, **head)
    network = network_for(ESConfig(**config), space, chosen.outputs)
    if getattr(network, "normalized", False):
        from dataclasses import replace

        network = replace(network, reference=rng.integers(0, 256, (6, *network.input_shape), dtype=np.uint8))  # type: ignore[type-var]
    center = network.initial(rng) + 0.1 * rng.standard_normal(network.dimension).astype(np.float32)
    images = len(network.input_shape) > 1
    normalizer = None if images else Normalizer(rng.standard_normal(5), 1 / rng.uniform(0.5, 2, 5))
    return Policy(network, chosen, center.astype(np.float32), normalizer, space)


def difference(form: str, policy: Policy, path: Path, count: int = 1000) -> float:
    observations = sample_observations(policy, count)
    target = path / files.FILES[form]
    files.write(form, policy, target)
    expected = own_actions(policy, observations)
    assert len(np.unique(expected.reshape(count, -1), axis=0)) > 1  # a policy that always does the same proves nothing
    return compare(form, expected, actions_of(files.read(form, policy, target), policy, observations))


@pytest.mark.parametrize(
    ("head", "form"),
    [
        *((head, form) for head in HEADS for form in ("state-dict", "torchscript")),
        ("discrete", "torch-export"),
        ("binned", "torch-export"),
    ],
)
def test_every_head_acts_the_same(head: str, form: str, tmp_path: Path) -> None:
    space, options = HEADS[head]
    assert difference(form, policy_with({"hidden": (8, 8)}, space, **options), tmp_path) <= 1e-5


@pytest.mark.parametrize("activation", ["tanh", "relu", "leaky_relu", "elu", "selu", "silu"])
def test_every_activation_acts_the_same(activation: str, tmp_path: Path) -> None:
    assert difference("state-dict", policy_with({"activation": activation}, BOX), tmp_path) <= 1e-5


@pytest.mark.parametrize("form", ["state-dict", "torch-export"])
@pytest.mark.parametrize("network", ["gru", "lstm"])
def test_memory_is_carried_from_step_to_step(network: str, form: str, tmp_path: Path) -> None:
    policy = policy_with({"network": network, "hidden": (6, 7)}, BOX)
    assert difference(form, policy, tmp_path, 2 * EPISODE + 5) <= 1e-5


@pytest.mark.parametrize(
    ("network", "shape", "form"),
    [
        ("nature-cnn", (4, 84, 84), "torch-export"),
        ("nature-cnn", (84, 84, 3), "torchscript"),
        ("conv-lstm", (42, 42), "torchscript"),
    ],
)
def test_image_networks_act_the_same(network: str, shape: tuple[int, ...], form: str, tmp_path: Path) -> None:
    space = gym.spaces.Box(0, 255, shape, np.uint8)
    policy = policy_with({"network": network}, BOX, space)
    assert difference(form, policy, tmp_path, 20) <= 3e-5


@pytest.mark.parametrize("kind", ["Plain", "Recurrent", "Unbatchable"])
def test_modules_of_the_user_act_the_same(kind: str, tmp_path: Path) -> None:
    policy = policy_with({"network": f"torch_modules:{kind}"}, BOX)
    assert difference("torchscript", policy, tmp_path, EPISODE + 20) <= 1e-5


@pytest.mark.parametrize(
    ("config", "count"),
    [({"hidden": (8, 8)}, 1000), ({"network": "lstm", "hidden": (6,)}, EPISODE + 20)],
    ids=["mlp", "lstm"],
)
def test_onnx_acts_the_same(config: dict[str, Any], count: int, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    assert difference("onnx", policy_with(config, gym.spaces.Discrete(3)), tmp_path, count) == 0


def test_altered_action_is_caught() -> None:
    expected = np.zeros((1000, 2), dtype=np.float32)
    found = expected.copy()
    found[17, 1] = 1e-3
    with pytest.raises(RunError, match=r"onnx: 1 of 1000 actions differ from the policy's, by up to 0\.001"):
        compare("onnx", expected, found)


def test_command_writes_files_that_need_no_esker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--format", "state-dict,torchscript", "-o", str(tmp_path), "--checkpoint", "latest"]
    assert main(["export", str(small_run()), *flags]) == 0
    assert "1,000" in capsys.readouterr().out
    observations = torch.randn(50, 4)
    actions = torch.jit.load(str(tmp_path / "policy_torchscript.pt"))(observations)
    policy = esker.load(small_run(), "latest")
    assert [policy.act(observation.numpy()) for observation in observations] == actions.tolist()
    about = json.loads((tmp_path / "policy.json").read_text())
    assert (about["checkpoint"], about["observation"]["shape"], about["state"]) == (4, ["batch", 4], [])
    assert "preprocessing" not in about


@pytest.mark.parametrize(
    ("options", "actions", "crop"),
    [
        ({"actions": ("right", "LEFT"), "crop": (34, 194), "screen_width": 4}, ["RIGHT", "LEFT"], [34, 194]),
        ({"fire": False}, ["NOOP", "RIGHT", "LEFT"], None),
    ],
)
def test_preprocessing_and_actions_of_a_game_are_written(
    options: dict[str, Any], actions: list[str], crop: Any, tmp_path: Path
) -> None:
    pytest.importorskip("ale_py")
    small = {name: value for name, value in QUICK.items() if name != "hidden"}
    small |= {"network": "linear", "generations": 1, "population": 2, "max_episode_steps": 5, "screen_size": 16}
    run = esker.train("ALE/Pong-v5", run_dir=tmp_path / "run", **small, **options)
    run.export(formats=["state-dict"])
    about = json.loads((run.path / "export" / "policy.json").read_text())
    width = options.get("screen_width", 16)
    assert about["preprocessing"] == {
        "frame_skip": 4,
        "crop": crop,
        "screen_size": 16,
        "screen_width": width,
        "frame_stack": 2,
        "actions": actions,
    }
    assert (about["observation"]["shape"], about["action"]["space"]["n"]) == (["batch", 2 * 16 * width], len(actions))


def test_state_dict_starts_another_run(tmp_path: Path) -> None:
    main(["export", str(small_run()), "--format", "state-dict", "-o", str(tmp_path)])
    target = str(tmp_path / "policy_state_dict.pt")
    run = small_run(seed=9, generations=1, init_from=target)
    np.testing.assert_array_equal(esker.load(run, 0).parameters, esker.load(small_run()).parameters)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "onxx"], "unknown format 'onxx'; did you mean 'onnx'?"),
        (["--checkpoint", "77"], "generation 77 does not exist; this run has 0 to 4"),
        (["-o", __file__], "a file; expected a folder"),
    ],
)
def test_wrong_request_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(small_run()), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
