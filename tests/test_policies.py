"""Policies: NumPy networks against torch, bits that do not depend on the batch, heads and normaliser by hand."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch

from esker.errors import UsageError
from esker.policies import spaces
from esker.policies.heads import head_for
from esker.policies.mlp import ACTIVATIONS, MLP
from esker.policies.normalizer import Statistics

TORCH = {
    "tanh": torch.nn.Tanh,
    "relu": torch.nn.ReLU,
    "leaky_relu": torch.nn.LeakyReLU,
    "elu": torch.nn.ELU,
    "selu": torch.nn.SELU,
    "silu": torch.nn.SiLU,
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_an_mlp_computes_what_the_torch_module_with_its_parameters_does(activation: str) -> None:
    network = MLP((5, 16, 8, 3), activation)  # type: ignore[arg-type]
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 16), TORCH[activation](), torch.nn.Linear(16, 8), TORCH[activation](), torch.nn.Linear(8, 3)
    )
    rows = network.open(1)
    rows.parameters[0] = torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    inputs = np.random.default_rng(0).standard_normal((1, 5)).astype(np.float32) * 3
    np.testing.assert_allclose(rows.forward(inputs), module(torch.from_numpy(inputs)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_rows_bits_depend_neither_on_the_batch_nor_on_its_place(activation: str) -> None:
    rng = np.random.default_rng(1)
    network = MLP((17, 64, 64, 6), activation)  # type: ignore[arg-type]
    parameters = rng.standard_normal((40, network.dimension)).astype(np.float32)
    inputs = rng.standard_normal((40, 17)).astype(np.float32) * 3
    alone = network.open(1)
    expected = []
    for row, x in zip(parameters, inputs, strict=True):
        alone.parameters[0] = row
        expected.append(alone.forward(x[None])[0].tobytes())
    for count in (2, 3, 7, 31, 32, 40):
        order = rng.permutation(40)[:count]
        rows = network.open(count)
        rows.parameters[:] = parameters[order]
        outputs = rows.forward(inputs[order])
        assert [outputs[i].tobytes() for i in range(count)] == [expected[k] for k in order]


def test_xavier_weights_lie_within_their_bound_and_biases_are_zero() -> None:
    center = MLP((10, 20, 2)).initial(np.random.default_rng(0))
    bound = np.sqrt(6 / 30)
    weight = center[:200]
    assert np.abs(weight).max() <= bound
    assert np.abs(weight).max() > 0.95 * bound
    assert center[200:220].tolist() == [0.0] * 20


def test_normalized_columns_have_norm_one_and_a_hundredth_at_the_output() -> None:
    center = MLP((10, 20, 2), initializer="normalized-columns").initial(np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(center[:200].reshape(20, 10), axis=1), 1.0, rtol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(center[220:260].reshape(2, 20), axis=1), 0.01, rtol=1e-5)


def outputs(*rows: list[float]) -> np.ndarray:
    return np.array(rows, dtype=np.float32)


def test_discrete_actions_are_the_argmax_counted_from_the_start_of_the_space() -> None:
    head = head_for(gym.spaces.Discrete(3, start=5))
    assert head(outputs([0, 2, 1], [3, 2, 1])) == [6, 5]


def test_multidiscrete_actions_are_an_argmax_per_group() -> None:
    head = head_for(gym.spaces.MultiDiscrete([2, 3]))
    assert head.outputs == 5
    assert head(outputs([0, 1, 5, 4, 3])).tolist() == [[1, 0]]


def test_multibinary_actions_are_the_signs() -> None:
    assert head_for(gym.spaces.MultiBinary(3))(outputs([1, -1, 0.5])).tolist() == [[1, 0, 1]]


BOX = gym.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))


def test_direct_actions_are_clipped() -> None:
    assert head_for(BOX)(outputs([-3, 2], [0.5, 9])).tolist() == [[-1, 2], [0.5, 4]]


def test_tanh_actions_span_the_bounds() -> None:
    actions = head_for(BOX, "tanh")(outputs([0, 0], [50, -50]))
    np.testing.assert_allclose(actions, [[0, 2], [1, 0]], atol=1e-6)


def test_binned_actions_are_evenly_spaced_from_bound_to_bound() -> None:
    head = head_for(BOX, "binned", 5)
    assert head.outputs == 10
    chosen = np.zeros((1, 10), np.float32)
    chosen[0, 1] = chosen[0, 5 + 4] = 1
    assert head(chosen).tolist() == [[-0.5, 4.0]]


def test_action_noise_is_added_before_the_clipping() -> None:
    assert head_for(BOX)(outputs([0, 3.5]), outputs([0.25, 1.0])).tolist() == [[0.25, 4.0]]


def test_actions_of_a_matrix_shape_keep_it() -> None:
    head = head_for(gym.spaces.Box(-2, 2, (2, 2), np.float32))
    assert head(outputs([1, 2, 3, 4])).shape == (1, 2, 2)


@pytest.mark.parametrize(
    ("space", "mode", "message"),
    [
        (gym.spaces.Text(3), "direct", "not supported"),
        (gym.spaces.Discrete(2), "tanh", "is for continuous"),
        (gym.spaces.Box(-np.inf, np.inf, (1,)), "binned", "needs bounded actions"),
    ],
)
def test_actions_that_no_head_fits_are_refused(space: gym.Space, mode: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        head_for(space, mode)  # type: ignore[arg-type]


def test_the_normaliser_uses_mean_and_deviation_and_clips_at_five() -> None:
    seen = np.array([[1.0, 10.0], [3.0, 10.0]])
    statistics = Statistics.empty(2).plus(2, seen.sum(0), (seen**2).sum(0))
    # first: mean 2, variance 1; second: mean 10, variance 0 floored at 0.01
    assert statistics.normalizer()(np.array([[4.0, 10.1], [90.0, 0.0]])).tolist() == [
        [2.0, pytest.approx(1.0, abs=1e-6)],
        [5.0, -5.0],
    ]


def test_nothing_seen_normalises_to_itself() -> None:
    assert Statistics.empty(2).normalizer()(np.array([[0.5, -4.0]])).tolist() == [[0.5, -4.0]]


@pytest.mark.parametrize(
    "space",
    [
        BOX,
        gym.spaces.Box(-np.inf, np.inf, (3, 2), np.float64),
        gym.spaces.Discrete(4, start=2),
        gym.spaces.MultiDiscrete([2, 3]),
        gym.spaces.MultiBinary(4),
        gym.spaces.Dict({"a": gym.spaces.Discrete(2), "b": gym.spaces.Tuple((BOX, gym.spaces.MultiBinary(2)))}),
    ],
)
def test_spaces_survive_json(space: gym.Space) -> None:
    import json

    assert spaces.from_json(json.loads(json.dumps(spaces.to_json(space)))) == space
