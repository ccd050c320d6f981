"""Every option changes what happens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import center

import esker
from esker.config.environment import CapGrowth
from esker.config.options import ESConfig
from esker.runs import checkpoints
from esker.runs.request import configure

BASE: dict[str, Any] = {
    "preset": None,
    "population": 8,
    "generations": 3,
    "center_episodes": 2,
    "hidden": (8,),
    "table_size": 50_000,
    "workers": 0,
    "quiet": True,
}


def train(tmp_path: Path, name: str, env: str = "CartPole-v1", **options: Any) -> esker.Run:
    return esker.train(env, run_dir=str(tmp_path / name), **(BASE | options))


# Options whose value must show in the trained parameters.
CHANGES = {
    "seed": 5,
    "population": 10,
    "sigma": 0.3,
    "lr": 0.2,
    "optimizer": "rmsprop",
    "weight_decay": 0.5,
    "lr_decay": 0.5,
    "sigma_decay": 0.5,
    "shaping": "log_utility",
    "antithetic": False,
    "common_seeds": False,
    "episodes_per_member": 2,
    "min_steps": 20_000,
    "noise": "counter",
    "table_size": 60_000,
    "hidden": (8, 8),
    "activation": "relu",
    "initializer": "normalized-columns",
    "normalize_observations": False,
    "statistics_episodes": 1,
    "max_episode_steps": 9,
    "adaptive_cap": "threshold",
    "env_kwargs": {"sutton_barto_reward": True},
    "generations": 4,
    "network": "gru",
    "top_directions": 2,
    "time_aware": True,
}


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return center(train(tmp_path_factory.mktemp("baseline"), "run")).tobytes()


@pytest.mark.parametrize("name", CHANGES)
def test_the_option_changes_the_trained_parameters(baseline: bytes, tmp_path: Path, name: str) -> None:
    assert center(train(tmp_path, "run", **{name: CHANGES[name]})).tobytes() != baseline


# Options of other kinds, and the test that shows what each does.
SHOWN_ELSEWHERE = {
    "device": "test_device: a run says on what it was obtained; a GPU that is not there is refused",
    "world": "test_device: worlds of torch, and of the user's own",
    "deterministic": "test_warp: test_constraints_in_order_change_no_more_than_rounding",
    "engine": "cluster/test_ray_engine: test_two_nodes_give_the_bits_of_one_process_also_with_a_step_minimum",
    "address": "cluster/test_cluster_requests: test_an_address_without_a_cluster_is_named",
    "cpus_per_worker": "cluster/test_cluster_requests: test_a_node_gives_the_workers_that_its_resources_allow",
    "gpus_per_node": "cluster/test_ray_engine: test_a_run_that_wants_a_gpu_per_node_takes_it_where_there_is_one",
    "resources": "cluster/test_cluster_requests: test_what_no_node_offers_is_named_with_what_there_is",
    "working_dir": "cluster/test_cluster_requests: test_a_working_folder_is_sent_to_the_nodes",
    "rank": "test_lowrank: test_training_with_low_rank_noise_is_exact_and_differs_by_rank",
    "survival_bonus": "test_ars: test_survival_bonus_moves_fitness_and_leaves_returns",
    "strategy": "test_own_strategy: test_a_strategy_by_path_trains_resumes_and_evaluates",
    "init_from": "test_warm_start: test_a_run_gives_its_best_parameters_and_statistics",
    "starts": "test_starts: test_the_best_start_goes_on_from_where_it_ended",
    "start_steps": "test_starts: test_the_best_start_goes_on_from_where_it_ended",
    "vectorizer": "test_native_runs: test_native_is_the_default_where_it_covers_the_environment_and_is_stored",
    "channels": "test_networks: test_conv_lstm_steps_like_torch_convolutions_and_an_lstm_cell",
    "lstm_size": "test_networks: test_conv_lstm_steps_like_torch_convolutions_and_an_lstm_cell",
    "reference_frames": "test_atari: test_the_reference_batch_is_in_every_checkpoint_and_resumes_exactly",
    "frame_skip": "test_atari: test_the_option_changes_what_is_seen",
    "frame_stack": "test_atari: test_the_option_changes_what_is_seen",
    "screen_width": "test_atari: test_the_option_changes_what_is_seen",
    "screen_size": "test_atari: test_the_option_changes_what_is_seen",
    "crop": "test_atari: test_a_cropped_frame_is_that_part_of_the_screen_scaled",
    "noop_max": "test_atari: test_the_option_changes_what_is_seen",
    "sticky_actions": "test_atari: test_the_option_changes_what_is_seen",
    "fire": "test_atari: test_without_the_fire_button_the_other_actions_remain",
    "actions": "test_atari: test_a_policy_has_the_named_actions_in_their_order_and_no_ops_stay_no_ops",
    "max_frames": "test_atari: test_max_frames_ends_an_episode",
    "max_speed": "test_other_strategies: test_clipup_never_steps_further_than_its_max_speed",
    "momentum": "test_momentum_needs_sgd_and_changes_the_result",
    "cap_growth": "test_the_threshold_cap_starts_low_and_grows_by_its_factor",
    "wrapper": "test_wrappers_are_applied",
    "action_mode": "test_continuous_action_options_change_the_result",
    "bins": "test_continuous_action_options_change_the_result",
    "action_noise": "test_continuous_action_options_change_the_result",
    "center_episodes": "test_center_episodes_are_counted_and_averaged",
    "steps": "test_training_stops_at_the_first_limit",
    "wall_time": "test_training_stops_at_the_first_limit",
    "goal": "test_a_goal_stops_after_patience_evaluations_in_a_row",
    "patience": "test_a_goal_stops_after_patience_evaluations_in_a_row",
    "checkpoint_every": "test_snapshots_are_written_and_kept_as_asked",
    "keep": "test_snapshots_are_written_and_kept_as_asked",
    "log": "test_backends: every test there",
    "wandb_project": "test_backends: test_wandb_offline_run_continues_in_a_moved_folder",
    "wandb_name": "test_backends: test_wandb_offline_run_continues_in_a_moved_folder",
    "wandb_tags": "test_backends: test_wandb_offline_run_continues_in_a_moved_folder",
    "wandb_entity": "test_backends: test_wandb_offline_run_continues_in_a_moved_folder",
    "wandb_group": "test_backends: test_wandb_offline_run_continues_in_a_moved_folder",
    "wandb_id": "test_backends: test_wandb_keeps_the_id_it_was_given",
    "wandb_mode": "test_backends: test_wandb_keeps_its_name_and_id_when_neither_was_chosen",
    "run_dir": "every test here",
    "quiet": "test_quiet_prints_nothing",
    "inexact": "test_exactness: test_a_machine_that_computes_other_bits_is_refused_unless_told",
    "workers": "test_exactness: test_a_killed_worker_does_not_change_a_bit",
    "slots": "test_slots_bound_the_environments_made",
    "step_timeout": "test_faults: test_a_hanging_step_is_evaluated_again_elsewhere",
    "on_error": "test_faults: test_with_on_error_worst_failed_members_rank_last_and_are_counted",
    "fresh_environments": "test_episodes: test_fresh_environments_make_a_fickle_environment_exact",
    "env": "every test here",
    "algo": "test_cli: test_a_wrong_request_gets_status_2_and_one_line",
}


def test_no_option_is_without_a_test_of_its_effect() -> None:
    assert set(ESConfig.__dataclass_fields__) == set(CHANGES) | set(SHOWN_ELSEWHERE)


def test_momentum_needs_sgd_and_changes_the_result(tmp_path: Path) -> None:
    plain = train(tmp_path, "plain", optimizer="sgd")
    assert center(train(tmp_path, "momentum", optimizer="sgd", momentum=0.9)).tobytes() != center(plain).tobytes()


def test_the_threshold_cap_starts_low_and_grows_by_its_factor(tmp_path: Path) -> None:
    growth = {"initial": 8, "threshold": 1.0, "factor": 2}
    options = {"env_kwargs": {"length": 50}, "adaptive_cap": "threshold", "generations": 4}
    grown = train(tmp_path, "grown", "worlds:Corridor", cap_growth=growth, **options)
    assert [row["episode_length_mean"] for row in grown.history] == [8, 16, 32, 50]
    assert grown.config.cap_growth == CapGrowth(initial=8, threshold=1.0, factor=2.0)  # as its folder holds it
    former = {"cap_initial": 8, "cap_threshold": "1", "cap_factor": 2.0}
    assert center(train(tmp_path, "former", "worlds:Corridor", **options, **former)).tobytes() == center(grown).tobytes()


def test_the_centre_is_judged_by_whole_episodes_while_members_are_capped(tmp_path: Path) -> None:
    """On Pendulum a cut episode costs less than a whole one: a centre cut short would be the best ever seen."""
    growth = {"initial": 20, "threshold": 0.5, "factor": 2}
    run = train(tmp_path, "run", "Pendulum-v1", adaptive_cap="threshold", cap_growth=growth, generations=5)
    history = run.history
    assert [row["episode_length_mean"] for row in history] == [20, 40, 80, 160, 200]
    assert [row["center_rank"] is None for row in history] == [True, True, True, True, False]
    assert all(row["center_return"] < -600 for row in history), [row["center_return"] for row in history]


def test_fields_of_the_cap_that_a_layer_leaves_out_are_those_of_the_layer_below() -> None:
    file = {"adaptive_cap": "threshold", "cap_initial": 8, "cap_factor": 3}
    request = configure("CartPole-v1", {"cap_growth": '{"factor": 2}'}, config=file)
    assert request.config.cap_growth == CapGrowth(initial=8, factor=2.0)
    assert "cap_initial = 8 is initial = 8 of cap_growth" in request.notices


def test_the_twice_mean_cap_begins_without_one_and_follows_the_last_generation(tmp_path: Path) -> None:
    run = train(tmp_path, "run", adaptive_cap="twice-mean")
    lengths = [row["episode_length_mean"] for row in run.history]
    assert [row["episode_cap"] for row in run.history] == [None, round(2 * lengths[0]), round(2 * lengths[1])]


def test_one_kept_snapshot_a_generation_is_overwritten_and_resumes(tmp_path: Path) -> None:
    whole = train(tmp_path, "whole", generations=6)
    run = train(tmp_path, "run", generations=4, keep=1, checkpoint_every=1)
    kept, chosen = checkpoints.generations(run.path / "checkpoints"), checkpoints.pointed(run.folder.best_file)
    assert chosen is not None
    state = json.loads((run.path / "checkpoints" / "000004" / "state.json").read_text())
    assert kept == sorted(
        {0, state["best_generation"], chosen, 4}
    )  # the start, the best (also before the end) and the newest
    assert center(esker.resume(run.path, generations=6)).tobytes() == center(whole).tobytes()


def test_wrappers_are_applied(tmp_path: Path) -> None:
    plain = train(tmp_path, "plain", "worlds:make_corridor")
    doubled = train(tmp_path, "doubled", "worlds:make_corridor", wrapper=["worlds:scale_reward"])
    assert (plain.best_return, doubled.best_return) == (16.0, 32.0)


def test_continuous_action_options_change_the_result(tmp_path: Path) -> None:
    variants: list[dict[str, Any]] = [
        {},
        {"action_noise": 0.2},
        {"action_mode": "tanh"},
        {"action_mode": "binned"},
        {"action_mode": "binned", "bins": 3},
    ]
    found = {center(train(tmp_path, str(i), "worlds:Continuous", **v)).tobytes() for i, v in enumerate(variants)}
    assert len(found) == len(variants)


@pytest.mark.parametrize("shaping", ["centered_rank", "normalized", "log_utility", "raw", "sign", "centered_sign_rank"])
def test_every_shaping_trains(tmp_path: Path, shaping: str) -> None:
    run = train(tmp_path, "run", "worlds:Continuous", shaping=shaping, generations=2)
    assert run.history[-1]["gradient_norm"] >= 0
    assert len(run.history) == 2


def test_center_episodes_are_counted_and_averaged(tmp_path: Path) -> None:
    run = train(tmp_path, "run", center_episodes=5, generations=1)
    facts = next(run.folder.facts())
    assert len(facts.center_returns) == 5
    assert run.history[0]["center_return"] == facts.center_returns.mean()
    assert run.history[0]["env_steps"] == facts.lengths.sum() + facts.center_lengths.sum()
    assert run.history[0]["center_rank"] == 1 + (facts.returns > facts.center_returns.mean()).sum()


def test_training_stops_at_the_first_limit(tmp_path: Path) -> None:
    by_steps = train(tmp_path, "steps", generations=100, steps=6000)
    assert by_steps.history[-2]["env_steps"] < 6000 <= by_steps.history[-1]["env_steps"]
    by_time = train(tmp_path, "time", generations=10**6, wall_time=0.3)
    assert by_time.outcome is not None
    dropped = "dropped" in by_time.outcome.reason  # a busy machine may take too long over the last generation
    assert by_time.history[-2]["wall_time"] < 0.3
    assert (by_time.history[-1]["wall_time"] < 0.3) == dropped


def test_a_goal_stops_after_patience_evaluations_in_a_row(tmp_path: Path) -> None:
    run = train(tmp_path, "run", "worlds:Corridor", generations=50, goal=16.0, patience=3)
    assert [row["goal_streak"] for row in run.history] == [1, 2, 3]
    assert run.outcome is not None
    assert run.outcome.goal_reached
    assert len(train(tmp_path, "never", "worlds:Corridor", goal=16.5, patience=1).history) == 3


def test_snapshots_are_written_and_kept_as_asked(tmp_path: Path) -> None:
    def kept(run: esker.Run) -> set[int]:
        best = {checkpoints.pointed(run.folder.best_file)}
        return set(checkpoints.generations(run.folder.checkpoints)) - best - {0}  # type: ignore[operator]

    constant = {"env": "worlds:Corridor", "generations": 7, "center_episodes": 20}  # enough to judge the first as the best
    assert kept(train(tmp_path, "a", checkpoint_every=2, keep=None, **constant)) == {2, 4, 6, 7}
    assert kept(train(tmp_path, "b", checkpoint_every=3, keep=2, **constant)) == {6, 7}


def test_quiet_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, "quiet")
    assert capfd.readouterr() == ("", "")
    train(tmp_path, "loud", quiet=False)
    assert "generation 2" in capfd.readouterr().out


def test_slots_bound_the_environments_made(tmp_path: Path) -> None:
    made: list[int] = []

    def make() -> Any:
        from worlds import Corridor

        made.append(1)
        return Corridor()

    esker.train(make, run_dir=str(tmp_path / "run"), **(BASE | {"slots": 3}))
    assert len(made) == 1 + 3  # one to look at, three slots


def test_a_callback_sees_every_row_and_can_stop(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(row: dict[str, Any]) -> bool:
        seen.append(row["generation"])
        return len(seen) == 2

    assert len(train(tmp_path, "run", on_generation=look, generations=9).history) == 2
    assert seen == [0, 1]
