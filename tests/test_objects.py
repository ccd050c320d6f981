"""Environments and networks given as Python objects."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
import worlds
from torch_modules import Plain

import esker
from esker.errors import UsageError
from esker.policies.custom import network_name
from esker.policies.module import module_network
from esker.worlds.instances import from_instance


def test_instance_of_a_registered_environment_is_its_id_and_arguments() -> None:
    assert from_instance(gym.make("CartPole-v1")) == ("CartPole-v1", {})
    assert from_instance(gym.make("Pendulum-v1", g=9.0)) == ("Pendulum-v1", {"g": 9.0})


def test_other_instance_is_copied_as_it_is() -> None:
    env = worlds.Corridor(length=3)
    copies, arguments = from_instance(env)
    assert not isinstance(copies, str)
    assert (copies().length, copies() is env, arguments) == (3, False, {})
    assert copies.__qualname__ == "<instance of Corridor>"


def test_instance_that_cannot_be_copied_is_refused_with_the_remedy() -> None:
    env: Any = worlds.Corridor()
    env.lock = threading.Lock()
    with pytest.raises(UsageError, match=r"instance of Corridor that cannot be copied .* pass a function that makes it"):
        from_instance(env)


def test_class_that_can_be_imported_is_its_path() -> None:
    assert network_name(Plain) == "torch_modules:Plain"
    assert network_name("mlp") == "mlp"


def test_module_begins_with_its_own_parameters() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    name = network_name(module)
    assert name == "torch.nn.modules.container:<instance of Sequential>"
    network = module_network(name, (3,), 2, images=False)
    expected = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy()
    np.testing.assert_array_equal(network.initial(np.random.default_rng(0)), expected)


def test_factory_of_a_function_is_called_with_what_it_takes() -> None:
    def without() -> torch.nn.Module:
        return torch.nn.Linear(3, 2)

    network = module_network(network_name(without), (3,), 2, images=False)
    assert network.dimension == 8
    network = module_network(network_name(lambda shape, outputs: torch.nn.Linear(shape[0], outputs)), (5,), 4, images=False)
    assert network.dimension == 24


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(UsageError, match="network is a int; expected a name, a torch module"):
        network_name(3)
    with pytest.raises(UsageError, match="was a Python object; pass it again"):
        module_network("gone:<Net>", (3,), 2, images=False)


def test_a_run_keeps_the_environment_it_was_trained_on(tmp_path: Path) -> None:
    small = {"population": 2, "hidden": (2,), "generations": 1, "quiet": True, "workers": 0, "preset": None}
    run = esker.train(worlds.Corridor(length=3), run_dir=str(tmp_path / "run"), **small)
    assert run.evaluate(episodes=2, workers=0).episodes == 2
    assert len(run.resume(generations=2, quiet=True).resume(generations=3, quiet=True).history) == 3
    with pytest.raises(UsageError, match=r"Corridor>' cannot render: it was given as an instance"):
        run.render()
    with pytest.raises(UsageError, match=r"was a Python object; pass it again, as esker\.evaluate\(run_dir, env=…\)"):
        esker.evaluate(run.path, episodes=1)
    with pytest.raises(UsageError, match=r"or esker\.Run\(run_dir, env=…\)"):
        esker.Run(run.path).make_env()
    assert esker.Run(run.path, env=lambda: worlds.Corridor(length=3)).make_env().reset(seed=0)[0].shape == (3,)


def test_network_that_takes_something_else_is_told_what_it_is_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Class\(\(3,\), 2\), the observation's shape and the number of outputs: Type"):
        module_network(network_name(lambda inputs, outputs: torch.nn.Linear(inputs, outputs)), (3,), 2, images=False)


def test_images_that_the_user_flattens_are_vectors_for_training_and_for_the_loaded_policy(tmp_path: Path) -> None:
    options = {"population": 4, "hidden": (4,), "generations": 1, "center_episodes": 1, "quiet": True, "workers": 0}
    flat = "gymnasium.wrappers:FlattenObservation"
    run = esker.train("worlds:Screen", wrapper=[flat], preset=None, run_dir=str(tmp_path / "run"), **options)
    assert run.folder.about()["observation_space"]["shape"] == [64]
    assert run.policy("latest").act(np.zeros(64, dtype=np.uint8)).shape == (1,)
