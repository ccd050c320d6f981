"""What Evolution does to models: which parameters move, in which precision, and what else stays as it was."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import esker
from esker.functions.parameters import FlatParameters, layout_of

FAST = {"noise": "counter", "quiet": True, "workers": 0, "population": 4}
X = torch.linspace(-1, 1, 12).reshape(4, 3)


def norm(model: nn.Module) -> torch.Tensor:
    return -sum((p.float() ** 2).sum() for p in model.parameters())


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3, bias=False)
        self.second = nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def still_tied(model: Tied) -> float:
    return float(torch.equal(model.first.weight, model.second.weight))


@pytest.mark.parametrize("how", [{}, {"workers": 1}, {"workers": 1, "executor": "threads"}])
def test_tied_weights_move_once_and_together(how: dict) -> None:
    model = Tied()
    assert FlatParameters(model, layout_of(model)).dimension == 9
    evolution = esker.Evolution(model, still_tied, **{**FAST, **how})
    evolution.run(1)
    assert evolution.history[0]["return_min"] == 1.0
    assert model.second.weight is model.first.weight


@pytest.mark.parametrize("how", [{}, {"workers": 1}, {"workers": 1, "executor": "threads"}])
def test_weights_tied_by_memory_alone_stay_tied_in_every_copy(how: dict) -> None:
    model = Tied()
    model.second.weight = nn.Parameter(model.first.weight.data)
    assert FlatParameters(model, layout_of(model)).dimension == 9
    evolution = esker.Evolution(model, still_tied, **{**FAST, **how})
    evolution.run(1)
    assert evolution.history[0]["return_min"] == 1.0


def test_frozen_and_unchosen_parameters_never_move() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(2, 1))
    model[0].weight.requires_grad_(False)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    grads = {name: p.requires_grad for name, p in model.named_parameters()}
    seen: list[bool] = []

    def reward(model: nn.Module) -> torch.Tensor:
        seen.append(torch.equal(model[0].weight, before["0.weight"]) and torch.equal(model[2].bias, before["2.bias"]))
        return norm(model)

    esker.Evolution(model, reward, params=lambda name, p: not name.startswith("2."), lr=0.1, final="last", **FAST).run(2)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {"0.bias", "1.weight", "1.bias"}
    assert all(seen)
    assert {name: p.requires_grad for name, p in model.named_parameters()} == grads


def test_params_takes_names() -> None:
    model = nn.Linear(3, 1)
    bias = model.bias.detach().clone()
    esker.Evolution(model, norm, params=["weight"], lr=0.1, **FAST).run(2)
    assert torch.equal(model.bias, bias)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_perturbed_in_float32_and_cast(dtype: torch.dtype) -> None:
    model = nn.Linear(3, 2).to(dtype)
    seen = []
    evolution = esker.Evolution(model, lambda m: seen.append(m.weight.detach().clone()) or 1.0, sigma=1e-3, **FAST)
    member = evolution.strategy.ask(slice(0, 1)).parameters()[0]
    evolution.run(1)
    assert seen[1].dtype == dtype
    assert torch.equal(seen[1].reshape(-1), member[:6].to(dtype))
    assert model.weight.dtype == dtype


def test_small_steps_add_up_in_half_precision() -> None:
    model = nn.Linear(1, 1, bias=False).half()
    nn.init.constant_(model.weight, 1.0)  # half precision cannot hold 1 + 1e-4
    options = {**FAST, "lr": 1e-4, "final": "last", "population": 10}
    esker.Evolution(model, lambda m: float(m.weight), sigma=0.1, **options).run(40)
    assert float(model.weight) == pytest.approx(1.004, abs=1e-3)


def test_buffers_start_equal_in_every_evaluation_and_come_back() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    model.train()
    before = model[1].running_mean.clone()
    seen = []

    def reward(model: nn.Module) -> torch.Tensor:
        seen.append((model.training, model[1].running_mean.clone(), int(model[1].num_batches_tracked)))
        out = model(X).sum()
        model.eval()
        return out

    esker.Evolution(model, reward, **FAST).run(2)
    assert all(training and torch.equal(mean, before) and count == 0 for training, mean, count in seen)
    assert torch.equal(model[1].running_mean, before)
    assert model.training


def test_a_list_of_tensors_and_a_single_one_can_evolve() -> None:
    tensors = [torch.ones(2, 2), torch.ones(3)]
    shapes = []
    answer = esker.Evolution(tensors, lambda w: shapes.append([p.shape for p in w]) or -float(w[1].sum()), lr=0.1, **FAST)
    assert answer.run(2) is tensors
    assert shapes[0] == [(2, 2), (3,)]
    x = torch.ones(2, 3)
    esker.Evolution(x, lambda x: -(x**2).sum(), lr=0.1, **FAST).run(3)
    assert x.shape == (2, 3)
    assert float(x.sum()) < 6


def test_a_reward_may_be_a_lambda_closure_partial_or_method() -> None:
    import functools

    class Judge:
        def __init__(self, target: float) -> None:
            self.target = target

        def score(self, model: nn.Module) -> float:
            return -abs(float(model.weight.sum()) - self.target)

    scale = 3.0

    def closure(model: nn.Module) -> float:
        return scale * float(model.weight.sum())

    def with_extra(extra: float, model: nn.Module) -> float:
        return extra * float(model.weight.sum())

    rewards = [lambda m: float(m.weight.sum()), closure, functools.partial(with_extra, 2.0), Judge(5.0).score]
    together = [*rewards, lambda m: sum(reward(m) for reward in rewards)]  # one start of a worker tries them all
    for reward, workers in [*((r, 0) for r in together), (together[-1], 1)]:
        model = nn.Linear(3, 1)
        nn.init.constant_(model.weight, 0.1)
        nn.init.constant_(model.bias, 0.0)
        esker.Evolution(model, reward, lr=0.1, final="last", **{**FAST, "workers": workers}).run(1)
        assert float(model.weight.sum()) > 0.3


@pytest.mark.parametrize(
    "answer",
    [2, True, 2.0, np.float32(2), np.array(2.0), np.array([2.0]), torch.ones(1), torch.ones(1, 1, requires_grad=True)],
)
def test_whatever_holds_one_number_is_a_reward(answer: object) -> None:
    evolution = esker.Evolution(nn.Linear(2, 1), lambda model: answer, **FAST)
    evolution.run(1)
    assert evolution.history[0]["return_mean"] == float(torch.as_tensor(answer))


def test_the_random_state_of_a_gpu_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    state = [3]  # there is no GPU here: its generator is played by this list
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: state.append(seed))
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: list(state))
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", lambda states: state.__setitem__(slice(None), states))
    seen = []
    esker.Evolution(nn.Linear(2, 1), lambda model, seed: seen.append(state[-1] == seed) or 1.0, **FAST).run(1)
    assert all(seen)
    assert state == [3]


def test_a_reward_may_take_model_and_weights() -> None:
    pairs = []

    def reward(model: nn.Module, weights: list[torch.Tensor]) -> float:
        pairs.append(torch.equal(model.weight, weights[0]) and torch.equal(model.bias, weights[1]))
        return 1.0

    esker.Evolution(nn.Linear(2, 1), reward, **FAST).run(1)
    assert len(pairs) == 5
    assert all(pairs)


def test_a_seed_that_the_user_bound_is_not_replaced() -> None:
    import functools

    seen = []
    reward = functools.partial(lambda model, seed: seen.append(seed) or 1.0, seed=11)
    esker.Evolution(nn.Linear(2, 1), reward, **FAST).run(1)
    assert seen == [11] * 5


def test_pairs_share_their_seed_and_generations_do_not() -> None:
    seeds = []
    esker.Evolution(nn.Linear(2, 1), lambda model, seed: seeds.append(seed) or 1.0, **FAST).run(2)
    assert seeds[1] == seeds[2]
    assert seeds[3] == seeds[4]
    assert len(set(seeds)) == 6  # two pairs and the centre, twice
    seeds.clear()
    esker.Evolution(nn.Linear(2, 1), lambda model, seed: seeds.append(seed) or 1.0, common_seeds=False, **FAST).run(1)
    assert len(set(seeds)) == 5


def test_slices_of_a_population_are_rows_of_the_whole() -> None:
    for noise in ("counter", "table"):
        for antithetic in (True, False):
            es = esker.OpenAIES(torch.linspace(0, 1, 33), population=12, sigma=0.3, antithetic=antithetic, noise=noise)
            rows = es.ask().parameters()
            by_hand = np.empty((12, 33), dtype=np.float32)
            for member in range(12):
                es.ask().write(member, by_hand[member])
            assert np.array_equal(rows.numpy(), by_hand)
            for chosen in (slice(0, 5), slice(3, 8), slice(1, 12, 3), slice(11, None)):
                assert torch.equal(es.ask(chosen).parameters(), rows[chosen])


def test_copies_that_exchange_only_fitness_stay_bit_identical() -> None:
    copies = [esker.OpenAIES(torch.ones(9), population=8, sigma=0.1, lr=0.05, seed=4) for _ in range(2)]
    for _ in range(5):
        parts = [es.ask(slice(4 * i, 4 * i + 4)).parameters() for i, es in enumerate(copies)]
        fitness = torch.cat([-(part**2).sum(1) for part in parts])
        for es in copies:
            es.tell(fitness)
    joined = esker.OpenAIES(torch.zeros(9), population=8, sigma=0.1, lr=0.05, seed=4)
    joined.load_state_dict(copies[0].state_dict())
    for es in (*copies, joined):
        es.tell(np.arange(8.0))
    assert torch.equal(copies[0].center, copies[1].center)
    assert torch.equal(copies[0].center, joined.center)
    assert float((copies[0].center ** 2).sum()) < 9
