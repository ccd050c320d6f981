"""Torch modules by import path: batched by vmap, or one by one, with a protocol for recurrent state."""

import numpy as np
import pytest
import torch
import torch_modules

import esker
from esker.policies.module import build, module_network

TINY = {"preset": None, "noise": "counter", "population": 6, "generations": 2, "max_episode_steps": 30}
NAMES = ["Plain", "Recurrent", "Unbatchable"]


def network_of(name):
    return module_network(f"torch_modules:{name}", (4,), 2, images=False)


@pytest.mark.parametrize("name", NAMES)
def test_rows_return_what_the_module_itself_returns(name):
    network = network_of(name)
    rows = network.open(3)
    flat = [network.initial(np.random.default_rng(seed)) for seed in range(3)]
    for row in range(3):
        rows.parameters[row] = flat[row]
        rows.start(row)
    modules = [build(network.path, (4,), 2, seed=0) for _ in range(3)]
    for module, values in zip(modules, flat, strict=True):
        torch.nn.utils.vector_to_parameters(torch.from_numpy(values), module.parameters())
    states = [module.initial_state() if network.recurrent else None for module in modules]
    for _ in range(3):
        inputs = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
        found = rows.forward(inputs)
        for row, module in enumerate(modules):
            observation = torch.from_numpy(inputs[row : row + 1])
            with torch.no_grad():
                if network.recurrent:
                    expected, states[row] = module(observation, states[row])
                else:
                    expected = module(observation)
            np.testing.assert_allclose(found[row], expected[0].numpy(), rtol=1e-5, atol=1e-6)


def test_a_module_without_a_batching_rule_is_run_one_by_one_and_that_is_reported_once(tmp_path):
    said = []

    class Listener:
        def begin(self, config, folder, rows): ...
        def generation(self, row, returns=None): ...
        def note(self, text):
            said.append(text)

        def end(self, reason): ...

    assert network_of("Plain").batched
    assert network_of("Recurrent").batched
    assert not network_of("Unbatchable").batched
    esker.train(
        "CartPole-v1",
        network="torch_modules:Unbatchable",
        workers=0,
        observer=Listener(),
        run_dir=str(tmp_path / "a"),
        **TINY,
    )
    assert [text for text in said if "one by one" in text] == [
        "network torch_modules:Unbatchable cannot be batched by torch.vmap: its members are run one by one"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_training_gives_the_same_bits_for_any_slots(name, tmp_path):
    centers = [
        esker.train(
            "CartPole-v1",
            network=f"torch_modules:{name}",
            slots=slots,
            workers=0,
            run_dir=str(tmp_path / f"{slots}"),
            **TINY,
        )
        .policy("latest")
        .parameters
        for slots in (1, 5, 40)
    ]
    assert (centers[0] == centers[1]).all()
    assert (centers[0] == centers[2]).all()


def test_a_worker_process_finds_the_module_and_agrees_with_this_process(tmp_path):
    centers = [
        esker.train(
            "CartPole-v1",
            network="torch_modules:Recurrent",
            workers=workers,
            run_dir=str(tmp_path / f"{workers}"),
            **TINY,
        )
        .policy("latest")
        .parameters
        for workers in (0, 1)
    ]
    assert (centers[0] == centers[1]).all()


def test_a_state_dict_of_the_module_is_its_warm_start(tmp_path):
    module = torch_modules.Plain((4,), 2)
    torch.save(module.state_dict(), tmp_path / "w.pt")
    run = esker.train(
        "CartPole-v1",
        network="torch_modules:Plain",
        init_from=str(tmp_path / "w.pt"),
        workers=0,
        run_dir=str(tmp_path / "a"),
        **TINY,
    )
    assert (run.policy(0).parameters == torch.nn.utils.parameters_to_vector(module.parameters()).detach().numpy()).all()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("torch_modules:Missing", "has no callable 'Missing'"),
        ("no_such_module:Net", "cannot import 'no_such_module'"),
        ("torch_modules:WrongSize", r"returns \(1, 1\); the action space needs outputs of shape \(1, 2\)"),
        ("torch_modules:Stateless", r"a recurrent module needs initial_state\(\) and forward\(observation, state\)"),
        ("torch_modules:not_a_module", "made a int; expected a torch.nn.Module"),
    ],
)
def test_a_module_that_does_not_fit_is_refused_in_one_line(path, message):
    with pytest.raises(esker.UsageError, match=message) as caught:
        esker.train("CartPole-v1", network=path, **TINY)
    assert "\n" not in str(caught.value)
