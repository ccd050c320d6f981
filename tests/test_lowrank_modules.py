"""Low-rank populations of torch modules: what each layer computes, the update, exactness, and wrong requests."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import dense
from torch import nn

import esker
from esker.errors import RunError, UsageError
from esker.functions.lowrank.int8 import expanded, round_weights
from esker.functions.lowrank.layers import convert
from esker.functions.lowrank.loaded import Loaded
from esker.functions.lowrank.members import LowRankMembers
from esker.functions.lowrank.normals import normals
from esker.functions.lowrank.parts import kept_layout, parts_of
from esker.functions.lowrank.strategy import LowRankES, Rates
from esker.functions.parameters import FlatParameters, layout_of

CPU = torch.device("cpu")
FAST: dict[str, Any] = {"noise": "low-rank", "quiet": True, "population": 12, "lr": 0.1}
X = torch.linspace(-1, 1, 24).reshape(4, 6)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """These models are too small for threads to help."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Tied(nn.Module):
    """Tokens in, logits out, one matrix for both."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embed(tokens)))


class Attends(nn.Module):
    """Attention reads its output layer's weight without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.out = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.attention(x, x, x, need_weights=False)[0])


class Squares(nn.Module):
    """A layer of an unknown kind."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(6, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.table) ** 2


def transposed() -> nn.Module:
    pytorch_utils = pytest.importorskip("transformers.pytorch_utils")
    return nn.Sequential(pytorch_utils.Conv1D(5, 6), nn.Tanh(), pytorch_utils.Conv1D(3, 5))


MODULES: dict[str, tuple[Any, torch.Tensor]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), X),
    "sequences": (lambda: nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 3)), X.reshape(2, 2, 6)),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(2, 4, 3, padding=1, stride=2), nn.Conv1d(4, 3, 2)), torch.randn(3, 2, 9)),
    "conv2d": (lambda: nn.Conv2d(4, 6, 3, padding=(1, 2), dilation=2, groups=2), torch.randn(2, 4, 7, 8)),
    "tied": (Tied, torch.tensor([[1, 2, 3], [7, 0, 10]])),
    "transposed": (transposed, X),
    "unknown": (lambda: nn.Sequential(nn.Linear(6, 6), Squares()), X),
    "attention": (Attends, torch.randn(2, 4, 6)),
}


def populated(module: nn.Module, rank: int, mirror: int) -> tuple[LowRankMembers, Any, torch.Tensor]:
    """Five directions of a module, and their noise."""
    import copy

    flat = FlatParameters(module, kept_layout(module, layout_of(module), "noise"))
    parts = parts_of(module, flat, rank)
    noise = normals(3, 1, range(5), parts.count, CPU)
    loaded = Loaded(parts, 5, mirror, torch.float32, CPU)
    loaded.load(noise, torch.tensor([[0.3, -0.3][:mirror]] * 4))  # the last is the centre
    evaluated = copy.deepcopy(module)
    return LowRankMembers(evaluated, loaded, convert(evaluated, parts, loaded)), parts, noise


@pytest.mark.parametrize("mirror", [1, 2])
@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("name", MODULES)
def test_a_member_computes_what_its_matrices_compute(name: str, rank: int, mirror: int) -> None:
    torch.manual_seed(0)
    make, inputs = MODULES[name]
    module = make().eval()
    members, parts, noise = populated(module, rank, mirror)
    outputs = members(inputs)
    own = members.each(inputs.expand(len(members), *inputs.shape))
    assert outputs.shape[:2] == (5 * mirror, len(inputs))
    torch.testing.assert_close(own, outputs)
    for member in range(5 * mirror):
        scale = 0.0 if member >= 4 * mirror else 0.3 * (1 - 2 * (member % mirror))
        perturbed = {
            key: module.get_parameter(key).detach() + scale * dense(parts, noise[member // mirror], part)
            for key, part in parts.by_name().items()
        }
        with torch.no_grad():
            alone = torch.func.functional_call(module, perturbed, (inputs,), tie_weights=False)
        torch.testing.assert_close(outputs[member], alone, atol=2e-5, rtol=1e-4)


def test_a_decaying_rate_shrinks_clipups_maximum_speed_with_it() -> None:
    module = nn.Linear(30, 20)
    flat = FlatParameters(module, kept_layout(module, layout_of(module), "noise"))
    rates = Rates(10, 0.1, lr=0.02, optimizer="clipup", max_speed=0.03, lr_decay=0.5)
    es = LowRankES(torch.from_numpy(flat.read()), parts_of(module, flat, 1), rates, 0, CPU)
    moved = [es.tell(np.arange(10.0)).update_norm for _ in range(6)]
    for generation in (4, 5):
        assert moved[generation] == pytest.approx(0.03 * 0.5**generation, rel=1e-4)


def test_no_member_has_its_own_matrix() -> None:
    members, parts, _ = populated(nn.Sequential(nn.Linear(300, 200), nn.Linear(200, 100)), 1, 2)
    assert parts.count == 300 + 200 + 200 + 200 + 100 + 100
    assert members.loaded.left.numel() + members.loaded.right.numel() < 10 * parts.count


def test_normals_do_not_depend_on_chunks_and_keep_their_bits() -> None:
    whole = normals(7, 2, range(40), 1001, CPU)
    assert torch.equal(whole[13:29, :77], normals(7, 2, range(13, 29), 77, CPU))
    assert not torch.equal(whole, normals(7, 3, range(40), 1001, CPU))
    assert abs(float(whole.mean())) < 0.02
    assert abs(float(whole.var()) - 1) < 0.02
    assert float((whole**4).mean()) == pytest.approx(3, abs=0.1)
    expected = [float(np.float32(v)) for v in KNOWN]
    assert whole[0, :4].tolist() == expected


KNOWN = (-0.6000038981437683, -0.10135969519615173, -0.5917816162109375, 1.1306090354919434)


@pytest.mark.parametrize("rank", [1, 3])
def test_the_update_is_the_weighted_sum_of_dense_directions(rank: int) -> None:
    module = nn.Sequential(nn.Linear(6, 5), nn.LayerNorm(5), nn.Linear(5, 3))
    flat = FlatParameters(module, layout_of(module))
    parts = parts_of(module, flat, rank)
    es = LowRankES(torch.from_numpy(flat.read()), parts, Rates(population=8, sigma=0.1, lr=1.0), 5, CPU)
    weights = np.array([0.5, 0.0, -2.0, 1.0])
    noise = es.noise(range(4))
    expected = torch.zeros(parts.dimension)
    for weight, row in zip(weights, noise, strict=True):
        for part in parts.parts:
            expected[part.at] += float(weight) * dense(parts, row, part).reshape(-1)
    torch.testing.assert_close(es.weighted_sum(weights), expected, atol=1e-5, rtol=1e-5)


def test_a_step_of_sgd_is_lr_over_n_sigma_times_the_weighted_sum() -> None:
    module = nn.Linear(4, 3)
    flat = FlatParameters(module, layout_of(module))
    parts, start = parts_of(module, flat, 1), torch.from_numpy(flat.read())
    rates = Rates(population=4, sigma=0.1, lr=0.5, optimizer="sgd", shaping="raw", anchor_decay=0.2)
    es = LowRankES(start, parts, rates, 0, CPU)
    gradient = es.weighted_sum(np.array([1.0 - 3.0, 2.0 - 0.5])) / (4 * 0.1)
    es.tell([1.0, 3.0, 2.0, 0.5])
    torch.testing.assert_close(es.center, start + 0.5 * gradient * (1 - 0.5 * 0.2))


def target(members: LowRankMembers) -> torch.Tensor:
    out = members(X)
    return -((out - X.sum(1, keepdim=True).sin()) ** 2).flatten(1).mean(1)


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def evolve(iterations: int, **options: Any) -> tuple[torch.Tensor, esker.Evolution]:
    net = model()
    evolution = esker.Evolution(net, reward_batch=target, **{**FAST, **options})
    evolution.run(iterations)
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()]), evolution


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_evolution_learns_and_repeats_bit_for_bit(dtype: str) -> None:
    first, evolution = evolve(60, dtype=dtype, population=40, lr=0.1)
    again, _ = evolve(60, dtype=dtype, population=40, lr=0.1)
    assert torch.equal(first, again)
    rewards = [row["center_return"] for row in evolution.history]
    assert rewards[-1] > rewards[0] / 4  # rewards are negative: the error has fallen to a quarter
    assert float(first.abs().max()) < 10


def test_chunks_give_the_fitness_of_the_whole() -> None:
    _, whole = evolve(1)
    for size in (2, 4, 5, 8):
        _, chunked = evolve(1, members_per_batch=size)
        for name in ("return_mean", "return_max", "center_return"):
            assert chunked.history[0][name] == pytest.approx(whole.history[0][name], rel=1e-5)


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(tmp_path: Path) -> None:
    options: dict[str, Any] = {"checkpoint_every": 4, "final": "last", "anchor_decay": 0.1, "rank": 1}
    whole, _ = evolve(9, **options)
    evolve(6, run_dir=str(tmp_path / "run"), **options)
    for snapshot in sorted((tmp_path / "run" / "checkpoints").iterdir())[1:]:
        if snapshot.name.isdigit() and int(snapshot.name) > 4:  # what a kill after generation 4 would have lacked
            (snapshot / "state.safetensors").unlink()
    net = model()
    resumed = esker.Evolution.resume(tmp_path / "run", net, reward_batch=target)
    assert resumed.iteration == 6
    resumed.run(3)
    assert torch.equal(whole, torch.cat([p.detach().reshape(-1) for p in net.parameters()]))


def test_vectors_stay_where_they_are_kept_and_params_are_patterns() -> None:
    net = model()
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    esker.Evolution(net, reward_batch=target, vectors="keep", final="last", **FAST).run(2)
    assert torch.equal(net[0].bias, before["0.bias"])
    assert not torch.equal(net[0].weight, before["0.weight"])
    net = model()
    esker.Evolution(net, reward_batch=target, params="2.*", final="last", **FAST).run(2)
    assert torch.equal(net[0].weight, before["0.weight"])
    assert not torch.equal(net[2].bias, before["2.bias"])


def test_an_unknown_layer_is_named_once() -> None:
    net = nn.Sequential(nn.Linear(6, 6), Squares())
    evolution = esker.Evolution(net, reward_batch=lambda m: -m(X).flatten(1).mean(1), **FAST)
    evolution.run(2)
    assert [text for text in evolution.notices if "layer '1' (Squares)" in text] == evolution.notices


class SequenceFirst(nn.Module):
    """Moves its batch to another axis, where rows no longer belong to members in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.transpose(0, 1)).transpose(0, 1)


class ReadsWeight(nn.Module):
    """Uses a layer's weight without calling the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.layer.weight.T


@pytest.mark.parametrize("make", [SequenceFirst, ReadsWeight])
def test_a_module_whose_members_would_be_mixed_up_is_refused(make: type[nn.Module]) -> None:
    inputs = torch.randn(2, 3, 6)
    evolution = esker.Evolution(make(), reward_batch=lambda m: m(inputs).flatten(1).mean(1), sigma=1.0, **FAST)
    with pytest.raises(UsageError, match=r"computes alone|away from the first axis"):
        evolution.run(1)


def test_a_call_with_plain_values_beside_its_tensors_is_checked_too() -> None:
    class Flagged(SequenceFirst):
        def forward(self, x: torch.Tensor, mask: Any = None, use_cache: bool = True) -> torch.Tensor:
            return super().forward(x)

    inputs = torch.randn(2, 3, 6)
    reward = lambda m: m(inputs, mask=None, use_cache=False).flatten(1).mean(1)  # noqa: E731
    with pytest.raises(UsageError, match="away from the first axis"):
        esker.Evolution(Flagged(), reward_batch=reward, sigma=1.0, **FAST).run(1)


def test_a_call_with_a_count_of_rows_is_not_repeated_for_a_member() -> None:
    class Viewed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 2)

        def forward(self, x: torch.Tensor, rows: int) -> torch.Tensor:
            return self.layer(x).view(rows, 2)

    evolution = esker.Evolution(Viewed(), reward_batch=lambda m: m(X, len(X) * len(m)).flatten(1).mean(1), **FAST)
    evolution.run(1)
    assert evolution.iteration == 1


def test_a_model_whose_forward_changes_a_buffer_keeps_it_and_resumes(tmp_path: Path) -> None:
    class Counts(nn.Linear):
        def __init__(self) -> None:
            super().__init__(6, 2)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls.add_(1)
            return super().forward(x)

    net = nn.Sequential(nn.Linear(6, 6), Counts())
    esker.Evolution(net, reward_batch=target, run_dir=str(tmp_path), params="0.*", **FAST).run(1)
    assert net[1].calls == 0
    assert esker.Evolution.resume(tmp_path, net, reward_batch=target, params="0.*").iteration == 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"rank": 3}, r"rank is 3, and '2.weight' is a 1×8 matrix; use rank=1"),
    ({"noise": "counter", "rank": 2}, "rank is for noise='low-rank'"),
    ({"noise": "table", "dtype": "bfloat16"}, "dtype is for noise='low-rank'"),
    ({"dtype": "int4"}, "dtype is 'int4'"),
    ({"params": "3.*"}, "params names '3.\\*'"),
    ({"params": ["0.bias"], "vectors": "keep"}, "all vectors"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_a_wrong_request_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        esker.Evolution(model(), reward_batch=target, **{**FAST, **options})


def test_low_rank_noise_needs_a_batched_reward_and_a_module() -> None:
    with pytest.raises(UsageError, match="give reward_batch"):
        esker.Evolution(model(), lambda m: 0.0, noise="low-rank")
    with pytest.raises(UsageError, match="model is a Tensor"):
        esker.Evolution(torch.zeros(3), reward_batch=target, noise="low-rank")


def test_batch_statistics_are_refused() -> None:
    net = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4))
    with pytest.raises(UsageError, match="layer '1' takes statistics of its batch"):
        esker.Evolution(net, reward_batch=target, **FAST).run(1)
    esker.Evolution(net.eval(), reward_batch=lambda m: m(X).flatten(1).mean(1), **FAST).run(1)


@pytest.mark.parametrize(("reward", "message"), [
    (lambda m: torch.full((len(m),), float("nan")), "returned nan"),
    (lambda m: torch.zeros(len(m) + 1), "expected \\(14,\\)"),
])  # fmt: skip
def test_a_wrong_reward_stops_the_run(reward: Any, message: str) -> None:
    with pytest.raises(RunError, match=message):
        esker.Evolution(model(), reward_batch=reward, **FAST).run(1)


def test_out_of_memory_makes_chunks_smaller_and_is_reported() -> None:
    sizes = []

    def greedy(members: LowRankMembers) -> torch.Tensor:
        sizes.append(len(members))
        if len(members) > 8:
            raise torch.OutOfMemoryError("out of memory")
        return target(members)

    evolution = esker.Evolution(model(), reward_batch=greedy, **FAST)
    evolution.run(1)
    assert sizes == [14, 8, 8]
    assert any("6 members at a time" in text for text in evolution.notices)
    _, whole = evolve(1)
    assert evolution.history[0]["return_mean"] == pytest.approx(whole.history[0]["return_mean"], rel=1e-5)


def test_chunks_that_hold_many_evaluations_of_the_centre_shrink_to_a_single_pair() -> None:
    sizes = []

    def greedy(members: LowRankMembers) -> torch.Tensor:
        sizes.append(len(members))
        raise torch.OutOfMemoryError("out of memory")

    with pytest.raises(RunError, match="no memory for a single pair"):
        esker.Evolution(model(), reward_batch=greedy, center_evaluations=8, **FAST).run(1)
    assert sizes == [20, 14, 10]  # six pairs, three, one, each beside four for the centre


def weights_of(seen: list[torch.Tensor], generations: int, int8: bool) -> list[torch.Tensor]:
    """The centre before every generation of a run whose reward makes weights grow; `seen`: as it was evaluated."""
    torch.manual_seed(0)
    module, centers = nn.Sequential(nn.Linear(4, 8, bias=False)), []

    def reward(members: LowRankMembers) -> torch.Tensor:
        out = members(torch.eye(4))
        seen.append(out[-1].T.clone())
        centers.append(evolution.strategy.center.clone().view(8, 4))
        return out.flatten(1).sum(1)

    options: dict[str, Any] = {"population": 16, "sigma": 0.05, "lr": 0.1, "final": "last", "quiet": True}
    evolution = esker.Evolution(module, reward_batch=reward, noise="low-rank", int8=int8, **options)
    evolution.run(generations)
    return centers


def test_the_scales_of_int8_weights_follow_the_centre() -> None:
    seen: list[torch.Tensor] = []
    centers = weights_of(seen, 20, int8=True)
    assert float(centers[-1].abs().max()) > 3 * float(centers[0].abs().max())
    for center, evaluated in zip(centers, seen, strict=True):
        steps = center.abs().amax(1, keepdim=True) / 127
        assert bool(((center - evaluated).abs() <= 0.51 * steps).all())


def test_an_int8_run_resumes_with_equal_bits(tmp_path: Path) -> None:
    options: dict[str, Any] = {"int8": True, "final": "last", **FAST}
    whole = esker.Evolution(model(), reward_batch=target, **options)
    whole.run(9)
    begun = esker.Evolution(model(), reward_batch=target, run_dir=str(tmp_path), **options)
    begun.run(4)
    resumed = esker.Evolution.resume(tmp_path, model(), reward_batch=target)
    resumed.run(5)
    assert torch.equal(resumed.strategy.center, whole.strategy.center)


def test_a_resume_with_other_frozen_parameters_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"params": "0.*", **FAST}
    esker.Evolution(model(), reward_batch=target, run_dir=str(tmp_path), **options).run(2)
    other = model()
    with torch.no_grad():
        other[2].weight.add_(1.0)
    with pytest.raises(UsageError, match="frozen parameters or buffers are not those"):
        esker.Evolution.resume(tmp_path, other, reward_batch=target, params="0.*")
    resumed = esker.Evolution.resume(tmp_path, other, reward_batch=target, params="0.*", inexact=True)
    assert any("not bit-identically" in text for text in resumed.notices)


def test_int8_weights_are_within_half_a_step_and_members_keep_their_noise() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4))
    inputs, seen = torch.randn(5, 12), {}

    def reward(members: Any) -> torch.Tensor:
        seen["out"] = members(inputs).clone()
        return -(seen["out"] ** 2).mean((1, 2))

    options: dict[str, Any] = {
        "population": 6,
        "sigma": 0.1,
        "lr": 0.01,
        "noise": "low-rank",
        "quiet": True,
        "final": "last",
    }
    outputs = []
    for int8 in (False, True):
        run = esker.Evolution(copy.deepcopy(module), reward_batch=reward, int8=int8, **options)
        run.run(1)
        outputs.append(seen["out"])
    plain, rounded = outputs
    assert 0 < float((plain - rounded).abs().max()) < 0.05 * float(plain.abs().max())
    spread = (plain - plain[-1:]) - (rounded - rounded[-1:])  # the noise is not rounded away
    assert float(spread.abs().max()) < 0.2 * float((plain - plain[-1:]).abs().max())
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.27, -0.5, 0.004], [2.0, 1.0, 0.0]]))
    parts = parts_of(layer, FlatParameters(layer, layout_of(layer)), 1)
    round_weights(layer, parts)
    assert layer.weight.tolist() == [[127, -50, 0], [127, 64, 0]]
    torch.testing.assert_close(expanded(layer.weight)[0], torch.tensor([1.27, -0.5, 0.0]), atol=1e-6, rtol=0)


def test_int8_without_a_linear_layer_is_refused() -> None:
    with pytest.raises(UsageError, match="no linear layer moves"):
        esker.Evolution(
            nn.Conv1d(2, 3, 1),
            reward_batch=lambda members: torch.zeros(len(members)),
            noise="low-rank",
            int8=True,
            population=4,
        ).run(1)
