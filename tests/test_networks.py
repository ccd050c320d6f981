"""Convolutional and recurrent networks in NumPy against torch, and what their rows must keep apart."""

import subprocess
import sys
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from torch.nn import functional

import esker
from esker.config.options import ESConfig
from esker.policies.choose import conv_lstm, nature_cnn, network_for, recurrent

RNG = np.random.default_rng(0)
TINY = {"preset": None, "noise": "counter", "population": 8, "generations": 2, "hidden": (6, 5), "max_episode_steps": 40}


def tensors(network, flat):
    """The flat parameters as torch tensors by name."""
    parts, at = {}, 0
    for name, shape in network.shapes.items():
        size = int(np.prod(shape))
        parts[name] = torch.from_numpy(flat[at : at + size].reshape(shape).copy())
        at += size
    return parts


def opened(network, rows):
    """The network in a worker, every row with other parameters."""
    opened = network.open(rows)
    noise = 0.05 * np.random.default_rng(1).standard_normal(opened.parameters.shape, dtype=np.float32)
    opened.parameters[:] = network.initial(np.random.default_rng(2)) + noise
    for row in range(rows):
        opened.start(row)
    return opened


def normalize(x, reference, gamma, beta):
    """Batch normalisation by the statistics of another batch, written plainly."""
    axes = [0, *range(2, x.ndim)]
    mean, var = reference.mean(axes, keepdim=True), reference.var(axes, keepdim=True, correction=0)
    shape = (1, -1, *[1] * (x.ndim - 2))
    return gamma.view(shape) * (x - mean) / torch.sqrt(var + 1e-5) + beta.view(shape)


def test_nature_cnn_normalises_by_the_reference_batch_under_the_rows_own_weights():
    reference = RNG.integers(0, 256, (5, 4, 84, 84), dtype=np.uint8)
    network = replace(nature_cnn(ESConfig(), (4, 84, 84), 6), reference=reference)
    rows = opened(network, 2)
    images = RNG.integers(0, 256, (2, 4, 84, 84), dtype=np.uint8)
    found = rows.forward(images)
    for row in range(2):
        p = tensors(network, rows.parameters[row])
        x, r = torch.from_numpy(images[row : row + 1]).float() / 255, torch.from_numpy(reference).float() / 255
        for name, stride in (("conv1", 4), ("conv2", 2), ("conv3", 1)):
            x, r = (functional.conv2d(t, p[f"{name}.weight"], p[f"{name}.bias"], stride) for t in (x, r))
            g, b = p[f"{name}_norm.weight"], p[f"{name}_norm.bias"]
            x, r = functional.relu(normalize(x, r, g, b)), functional.relu(normalize(r, r, g, b))
        x, r = (functional.linear(t.flatten(1), p["hidden.weight"], p["hidden.bias"]) for t in (x, r))
        x = functional.relu(normalize(x, r, p["hidden_norm.weight"], p["hidden_norm.bias"]))
        expected = functional.linear(x, p["output.weight"], p["output.bias"])[0]
        np.testing.assert_allclose(found[row], expected.numpy(), rtol=1e-3, atol=1e-3)


def test_conv_lstm_steps_like_torch_convolutions_and_an_lstm_cell():
    reference = RNG.integers(0, 256, (7, 1, 42, 42), dtype=np.uint8)
    reference[:, :, :20] = 87  # half of the screen never changes
    network = replace(conv_lstm(replace(ESConfig(), channels=8, lstm_size=16), (1, 42, 42), 6), reference=reference)
    seen = torch.from_numpy(reference).float() / 255
    mean, deviation = seen.mean(0, keepdim=True), seen.std(0, keepdim=True, correction=0).clamp(min=0.1)
    rows = opened(network, 2)
    state = [(torch.zeros(1, 16), torch.zeros(1, 16)) for _ in range(2)]
    for _ in range(3):
        images = RNG.integers(0, 256, (2, 1, 42, 42), dtype=np.uint8)
        found = rows.forward(images)
        for row in range(2):
            p = tensors(network, rows.parameters[row])
            x = ((torch.from_numpy(images[row : row + 1]).float() / 255 - mean) / deviation).clamp(-5, 5)
            for n in range(1, 5):
                x = functional.selu(functional.conv2d(x, p[f"conv{n}.weight"], p[f"conv{n}.bias"], stride=2, padding=1))
            cell = torch.nn.LSTMCell(x.numel(), 16)
            cell.load_state_dict({k.removeprefix("lstm."): v for k, v in p.items() if k.startswith("lstm.")})
            with torch.no_grad():
                state[row] = cell(x.flatten(1), state[row])
            expected = functional.linear(state[row][0], p["output.weight"], p["output.bias"])[0]
            np.testing.assert_allclose(found[row], expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "cell"), [("lstm", torch.nn.LSTMCell), ("gru", torch.nn.GRUCell)])
def test_recurrent_mlp_steps_like_the_torch_cell(kind, cell):
    network = recurrent(replace(ESConfig(), network=kind, hidden=(7, 9)), 4, 3)
    rows = opened(network, 1)
    p = tensors(network, rows.parameters[0])
    module, state = cell(7, 9), None
    module.load_state_dict({k.removeprefix(f"{kind}."): v for k, v in p.items() if k.startswith(f"{kind}.")})
    for _ in range(4):
        x = RNG.standard_normal((1, 4)).astype(np.float32)
        found = rows.forward(x)
        h = torch.tanh(functional.linear(torch.from_numpy(x), p["hidden0.weight"], p["hidden0.bias"]))
        with torch.no_grad():
            state = module(h, state)
        hidden = state[0] if kind == "lstm" else state
        expected = functional.linear(hidden, p["output.weight"], p["output.bias"])
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-6)


NETWORKS = {
    "lstm": lambda: recurrent(replace(ESConfig(), network="lstm", hidden=(33, 17)), 5, 3),
    "gru": lambda: recurrent(replace(ESConfig(), network="gru", hidden=(33, 17)), 5, 3),
    "conv-lstm": lambda: replace(
        conv_lstm(replace(ESConfig(), channels=5, lstm_size=11), (1, 42, 42), 6),
        reference=RNG.integers(0, 256, (3, 1, 42, 42), dtype=np.uint8),
    ),
    "nature-cnn": lambda: replace(
        nature_cnn(ESConfig(), (60, 52, 3), 6), reference=RNG.integers(0, 256, (3, 60, 52, 3), dtype=np.uint8)
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_rows_bits_depend_neither_on_its_place_nor_on_its_company(name):
    network = NETWORKS[name]()
    shape = network.input_shape
    inputs = RNG.integers(0, 256, (3, 7, *shape)).astype(np.uint8 if len(shape) > 1 else np.float32)
    many, one = opened(network, 7), network.open(1)
    one.parameters[0] = many.parameters[4]
    one.start(0)
    for step in inputs[:2]:
        assert (many.forward(step)[4] == one.forward(step[4:5])[0]).all()
    many.move(4, 0)  # a gap is closed in mid-episode: parameters, statistics and state travel
    assert (many.forward(inputs[2][[4]])[0] == one.forward(inputs[2][[4]])[0]).all()


@pytest.mark.parametrize("name", ["lstm", "gru", "conv-lstm"])
def test_state_is_zero_again_when_an_episode_starts(name):
    network = NETWORKS[name]()
    x = RNG.integers(0, 256, (1, *network.input_shape)).astype(np.uint8 if len(network.input_shape) > 1 else np.float32)
    rows = opened(network, 1)
    first, second = rows.forward(x).copy(), rows.forward(x).copy()
    assert (first != second).any()
    rows.start(0)
    assert (rows.forward(x) == first).all()


def test_virtual_batch_norm_makes_the_scale_of_a_convolution_immaterial():
    network = NETWORKS["nature-cnn"]()
    rows = opened(network, 1)
    x = RNG.integers(0, 256, (1, 60, 52, 3), dtype=np.uint8)
    before = rows.forward(x).copy()
    rows.parameters[0, : 32 * 3 * 64] *= 4  # conv1.weight
    rows.start(0)
    np.testing.assert_allclose(rows.forward(x), before, atol=0.05)  # ε keeps it from being exact


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_training_gives_the_same_bits_for_any_slots_and_workers(kind, tmp_path):
    """With state left over from another episode, or reset in the wrong slot, one slot and five would differ."""
    centers = [
        esker.train("CartPole-v1", network=kind, slots=slots, workers=workers, run_dir=str(tmp_path / f"{slots}"), **TINY)
        .policy("latest")
        .parameters
        for slots, workers in ((1, 0), (5, 0), (3, 2))
    ]
    assert (centers[0] == centers[1]).all()
    assert (centers[0] == centers[2]).all()


def test_a_recurrent_policy_replays_the_center_episode_of_training(tmp_path):
    run = esker.train("CartPole-v1", network="lstm", workers=0, run_dir=str(tmp_path / "a"), center_episodes=1, **TINY)
    from esker.noise.address import Purpose, episode_seed

    policy, env = run.policy(1), gym.make("CartPole-v1", max_episode_steps=40)
    for _ in range(2):  # the second time only if reset() forgets
        policy.reset()
        observation, _ = env.reset(seed=episode_seed(0, Purpose.CENTER_EPISODE, 1, 0))
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
            total, done = total + reward, terminated or truncated
        assert total == run.history[1]["center_return"]


def test_workers_of_shipped_networks_never_import_torch():
    code = (
        "import sys, numpy as np, gymnasium as gym\n"
        "from dataclasses import replace\n"
        "from esker.config.options import ESConfig\n"
        "from esker.policies.choose import network_for\n"
        "import esker.tasks.episodes, esker.engines.worker\n"
        "box = gym.spaces.Box(0, 255, (1, 42, 42), np.uint8)\n"
        "rows = network_for(replace(ESConfig(), network='conv-lstm', normalize_observations=False), box, 6).open(1)\n"
        "rows.start(0); rows.forward(np.zeros((1, 1, 42, 42), np.uint8))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_channels_last_images_are_the_same_to_a_network_as_channels_first():
    config = replace(ESConfig(), channels=4, lstm_size=8)
    reference = RNG.integers(0, 256, (5, 3, 48, 48), dtype=np.uint8)
    first = replace(conv_lstm(config, (3, 48, 48), 2), reference=reference)
    last = replace(conv_lstm(config, (48, 48, 3), 2), reference=reference.transpose(0, 2, 3, 1))
    image = RNG.integers(0, 256, (1, 3, 48, 48), dtype=np.uint8)
    assert (opened(first, 1).forward(image) == opened(last, 1).forward(image.transpose(0, 2, 3, 1))).all()


def test_an_unknown_network_suggests_the_nearest():
    with pytest.raises(esker.UsageError, match="unknown network 'nature_cnn'; did you mean 'nature-cnn'"):
        network_for(replace(ESConfig(), network="nature_cnn"), gym.spaces.Box(-1, 1, (3,)), 2)
