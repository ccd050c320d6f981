"""The learner against a plain torch implementation of TD3, and the replay memory that feeds it."""

from __future__ import annotations

import copy
import errno
import itertools
import os

import numpy as np
import pytest
import torch
from torch import nn

from esker.learners.actors import Actors
from esker.learners.batches import Batches
from esker.learners.networks import FlatMLP, StackedMLP, initial, stacked
from esker.learners.replay import Replay
from esker.learners.rows import SharedRows, TransitionLayout
from esker.learners.spec import LearnerSpec
from esker.learners.td3 import TD3, Actor, Critics, critic_network

LOW, HIGH = (-2.0, 0.0), (2.0, 1.0)
SPEC = LearnerSpec(TransitionLayout(3, 2), LOW, HIGH, hidden=(5, 4), batch=16, lr=1e-2, tau=0.1)


def modules(row, sizes, activation):
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), activation()]
    network = nn.Sequential(*layers[:-1])
    nn.utils.vector_to_parameters(torch.from_numpy(np.array(row)), network.parameters())
    return network


def action(actor, observations):
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    return (high + low) / 2 + (high - low) / 2 * torch.tanh(actor(observations))


def batch_of(rng, rows=16):
    batch = torch.from_numpy(rng.standard_normal((rows, SPEC.layout.width)).astype(np.float32))
    batch[:, -1] = torch.from_numpy((rng.random(rows) < 0.7).astype(np.float32))
    return batch


def test_flat_networks_compute_what_modules_with_the_same_parameters_do():
    rows = [initial((3, 5, 2), np.random.default_rng(n)) for n in range(2)]
    twin, single = StackedMLP((3, 5, 2), "tanh"), FlatMLP((3, 5, 2), "tanh")
    twin.flat.copy_(torch.from_numpy(stacked(rows, (3, 5, 2))))
    single.flat.copy_(torch.from_numpy(rows[1]))
    inputs = torch.randn(7, 3)
    for number, row in enumerate(rows):
        expected = modules(row, (3, 5, 2), nn.Tanh)(inputs)
        torch.testing.assert_close(twin(inputs)[number], expected)
    torch.testing.assert_close(single(inputs), expected)
    torch.testing.assert_close(twin.frozen_first(inputs), modules(rows[0], (3, 5, 2), nn.Tanh)(inputs))
    assert len(rows[0]) == 3 * 5 + 5 + 5 * 2 + 2


def test_critic_updates_follow_the_definition():
    rng = np.random.default_rng(0)
    critics = Critics(SPEC, np.random.default_rng(5))
    first = np.random.default_rng(5)
    plain = [modules(initial(SPEC.critic_sizes, first), SPEC.critic_sizes, nn.LeakyReLU) for _ in range(2)]
    targets = copy.deepcopy(plain)
    optimizer = torch.optim.Adam([p for q in plain for p in q.parameters()], lr=SPEC.lr)
    row = initial(SPEC.actor_sizes, rng)
    bootstrap = FlatMLP(SPEC.actor_sizes, "tanh")
    bootstrap.flat.copy_(torch.from_numpy(row))
    actor = modules(row, SPEC.actor_sizes, nn.Tanh)
    half = (torch.tensor(HIGH) - torch.tensor(LOW)) / 2
    for _ in range(4):
        batch, noise = batch_of(rng), torch.randn(16, 2) * 3  # large enough to be clipped
        s, a, r, following, mask = batch[:, :3], batch[:, 3:5], batch[:, 5:6], batch[:, 6:9], batch[:, 9:]
        with torch.no_grad():
            smooth = (0.2 * noise).clamp(-0.5, 0.5) * half
            chosen = torch.max(torch.min(action(actor, following) + smooth, torch.tensor(HIGH)), torch.tensor(LOW))
            x = torch.cat([following, chosen], 1)
            goal = r + 0.99 * mask * torch.min(targets[0](x), targets[1](x))
        x = torch.cat([s, a], 1)
        loss = sum(((q(x) - goal) ** 2).mean() for q in plain)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for q, t in zip(plain, targets, strict=True):
                for p, slow in zip(q.parameters(), t.parameters(), strict=True):
                    slow.copy_(0.9 * slow + 0.1 * p)
        assert float(critics.update(batch, bootstrap, noise)) == pytest.approx(float(loss), rel=1e-4)
    for network, expected in ((critics.online, plain), (critics.target, targets)):
        rows = [nn.utils.parameters_to_vector(q.parameters()).detach().numpy() for q in expected]
        np.testing.assert_allclose(network.flat.numpy(), stacked(rows, SPEC.critic_sizes), rtol=1e-4, atol=1e-6)


def test_a_truncated_episode_is_bootstrapped_through_and_a_terminated_one_is_not():
    critics = Critics(SPEC, np.random.default_rng(1))
    bootstrap = FlatMLP(SPEC.actor_sizes, "tanh")
    batch = batch_of(np.random.default_rng(2))
    ended = batch.clone()
    batch[:, -1], ended[:, -1] = 1.0, 0.0
    noise = torch.zeros(16, 2)
    torch.testing.assert_close(critics._goal(ended, bootstrap, noise), ended[:, 5:6])
    assert (critics._goal(batch, bootstrap, noise) != batch[:, 5:6]).any()


def test_actor_updates_climb_the_first_critic_as_defined():
    rng = np.random.default_rng(3)
    rows = [initial(SPEC.critic_sizes, rng) for _ in range(2)]
    critic = critic_network(SPEC)
    critic.flat.copy_(torch.from_numpy(stacked(rows, SPEC.critic_sizes)))
    q1 = modules(rows[0], SPEC.critic_sizes, nn.LeakyReLU)
    start = initial(SPEC.actor_sizes, rng)
    actor, plain = Actor(SPEC), modules(start, SPEC.actor_sizes, nn.Tanh)
    actor.begin(start)
    optimizer, total = torch.optim.Adam(plain.parameters(), lr=SPEC.lr), 0.0
    for _ in range(5):
        batch = batch_of(rng)
        loss = -q1(torch.cat([batch[:, :3], action(plain, batch[:, :3])], 1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        actor.update(batch, critic)
        total += loss.item()
    expected = nn.utils.parameters_to_vector(plain.parameters()).detach().numpy()
    np.testing.assert_allclose(actor.row(), expected, rtol=1e-4, atol=1e-6)
    assert float(actor.total_loss) == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("count", [1, 3])
def test_actors_trained_at_once_end_where_each_would_alone_on_the_same_batches(count):
    rng = np.random.default_rng(4)
    critic = critic_network(SPEC)
    critic.flat.copy_(torch.from_numpy(stacked([initial(SPEC.critic_sizes, rng) for _ in range(2)], SPEC.critic_sizes)))
    starts = np.stack([initial(SPEC.actor_sizes, rng) for _ in range(count)])
    batches = [[batch_of(rng) for _ in range(count)] for _ in range(6)]
    together = Actors(SPEC, count)
    together.begin(starts)
    np.testing.assert_array_equal(together.rows(), starts)
    for step in batches:
        together.update(torch.cat(step), critic)
    for number, start in enumerate(starts):
        alone = Actor(SPEC)
        alone.begin(start)
        for step in batches:
            alone.update(step[number], critic)
        np.testing.assert_allclose(together.rows()[number], alone.row(), rtol=1e-4, atol=1e-6)
        assert not np.allclose(alone.row(), start, atol=1e-3)


def test_actors_trained_at_once_draw_their_own_batches_and_start_fresh():
    replay = replay_of(np.random.default_rng(0).standard_normal((300, SPEC.layout.width)).astype(np.float32))
    critic, start = critic_network(SPEC), initial(SPEC.actor_sizes, np.random.default_rng(0))
    critic.flat.normal_()
    actors, ends = Actors(SPEC, 2), []
    for _ in range(2):
        actors.begin(np.stack([start, start]))
        actors.train(replay, 6, critic, 5, lambda: None)
        ends.append(actors.rows())
    np.testing.assert_array_equal(*ends)
    assert not np.array_equal(ends[0][0], ends[0][1])


def test_beginning_again_forgets_the_optimizer():
    critic, start = critic_network(SPEC), initial(SPEC.actor_sizes, np.random.default_rng(0))
    critic.flat.normal_()
    actor, batch, ends = Actor(SPEC), batch_of(np.random.default_rng(0)), []
    for _ in range(2):
        actor.begin(start)
        for _ in range(3):
            actor.update(batch, critic)
        ends.append(actor.row())
    assert np.array_equal(*ends)


def replay_of(rows, capacity=1000):
    replay = Replay(SharedRows.create(None, rows.shape[1]), capacity)
    replay.append(rows)
    return replay


def test_the_actor_moves_every_second_update_only():
    rows = np.random.default_rng(0).standard_normal((100, SPEC.layout.width)).astype(np.float32)
    learner, batches = TD3(SPEC, 2, np.random.default_rng(0)), Batches(SPEC, replay_of(rows), 1)
    seen = [learner.actor.row()]
    for _ in range(4):
        learner.train(batches, 1)
        seen.append(learner.actor.row())
    assert [np.array_equal(a, b) for a, b in itertools.pairwise(seen)] == [True, False, True, False]


def test_a_learner_continues_from_its_state_to_the_same_bits():
    rows = np.random.default_rng(0).standard_normal((100, SPEC.layout.width)).astype(np.float32)
    one, other = TD3(SPEC, 2, np.random.default_rng(0)), TD3(SPEC, 2, np.random.default_rng(9))
    one.train(Batches(SPEC, replay_of(rows), 1), 7)
    other.load(one.state())
    for learner in (one, other):
        learner.train(Batches(SPEC, replay_of(rows), 2), 6)
    for name, array in one.state().items():
        assert array.tobytes() == other.state()[name].tobytes(), name


# replay


def test_rows_written_by_one_are_seen_by_another_mapping_of_the_file(tmp_path):
    mine = SharedRows.create(tmp_path / "replay", 3)
    writer = Replay(mine, 10)
    writer.append(np.arange(12, dtype=np.float32).reshape(4, 3))
    reader = SharedRows(mine.descriptor, 3)
    assert reader.first(4).tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def test_a_file_keeps_its_rows_for_the_next_process(tmp_path):
    first = SharedRows.create(tmp_path / "replay", 2)
    Replay(first, 10).append(np.ones((3, 2), dtype=np.float32))
    first.sync()
    first.close()
    assert SharedRows.create(tmp_path / "replay", 2).first(3).sum() == 6


def test_a_full_disk_raises_instead_of_ending_the_process(tmp_path, monkeypatch):
    def full(descriptor, start, length):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    replay = Replay(SharedRows.create(tmp_path / "rows", 2), 100)
    with pytest.raises(OSError, match="No space left"):
        replay.append(np.ones((5, 2), dtype=np.float32))
    assert replay.count == 0


def test_memory_grows_past_its_first_size_and_keeps_its_rows():
    replay = replay_of(np.full((65_000, 2), 7, dtype=np.float32), capacity=10**6)
    replay.append(np.full((70_000, 2), 8, dtype=np.float32))
    rows, first, end = replay.window()
    assert (first, end) == (0, 135_000)
    assert float(rows[:end].double().sum()) == 2 * (65_000 * 7 + 70_000 * 8)


def test_batches_come_from_the_last_rows_only_and_from_all_of_them():
    rows = np.repeat(np.arange(300, dtype=np.float32)[:, None], SPEC.layout.width, axis=1)
    batches = Batches(SPEC, replay_of(rows, capacity=100), 3)
    seen = {int(value) for _ in range(200) for value in batches.draw()[:, 0]}
    assert seen == set(range(200, 300))


def test_equal_keys_draw_equal_batches():
    rows = np.random.default_rng(0).standard_normal((300, SPEC.layout.width)).astype(np.float32)
    replay = replay_of(rows)
    one, other, different = (Batches(SPEC, replay, key) for key in (8, 8, 12))
    batch = one.draw()
    assert torch.equal(batch, other.draw())
    assert torch.equal(one.noise(), other.noise())
    assert not torch.equal(batch, different.draw())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_captured_bursts_do_what_single_updates_do():
    from dataclasses import replace

    spec = replace(SPEC, device="cuda")
    rows = np.random.default_rng(0).standard_normal((100, spec.layout.width)).astype(np.float32)
    replay = Replay(SharedRows.create(None, rows.shape[1]), 1000, "cuda")
    replay.append(rows)
    one, other = TD3(spec, 2, np.random.default_rng(0)), TD3(spec, 2, np.random.default_rng(0))
    batches = Batches(spec, replay, 1)
    one._burst._capture(batches)
    static = one._burst._static
    static.fill(batches)
    one._burst._graph.replay()
    for _ in range(8):
        other.update(static)
    for name, array in one.state().items():
        if name != "critic_updates":
            np.testing.assert_allclose(array, other.state()[name], rtol=1e-4, atol=1e-6, err_msg=name)
