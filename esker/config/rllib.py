"""RLlib's configuration keys for its ES, translated into esker's with a notice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from esker.config.foreign import Resolved, Translation, number, same_meaning
from esker.errors import UsageError

RENAMED = {
    "num_workers": "workers",
    "num_rollout_workers": "workers",
    "episodes_per_batch": "population",
    "train_batch_size": "min_steps",
    "noise_stdev": "sigma",
    "stepsize": "lr",
    "noise_size": "table_size",
    "action_noise_std": "action_noise",
    "horizon": "max_episode_steps",
    "env_config": "env_kwargs",
}
# Keys that only RLlib's ES has: a mapping with one of them is RLlib's.
MARKS = frozenset({"l2_coeff", "noise_stdev", "stepsize", "episodes_per_batch", "eval_prob", "noise_size"})
MARKS |= {"return_proc_mode", "report_length", "num_workers", "num_rollout_workers", "train_batch_size"}
MARKS |= {"observation_filter", "action_noise_std"}
FILTERS = {"MeanStdFilter": True, "ConcurrentMeanStdFilter": True, "NoFilter": False}
# What a dump of RLlib's whole configuration holds beside these: its ES does not look at them, or they have no use here.
WITHOUT_EFFECT = frozenset(
    [
        *("batch_mode", "callbacks", "clip_actions", "clip_rewards", "collect_metrics_timeout", "compress_observations"),
        *("create_env_on_driver", "custom_eval_function", "custom_resources_per_worker", "disable_env_checking", "eager"),
        *("eager_max_retraces", "eager_tracing", "env_task_fn", "evaluation_config", "evaluation_duration"),
        *("evaluation_duration_unit", "evaluation_interval", "evaluation_num_episodes", "evaluation_num_workers"),
        *("evaluation_parallel_to_training", "exploration_config", "explore", "extra_python_environs_for_driver"),
        *("extra_python_environs_for_worker", "fake_sampler", "framework", "gamma", "grad_clip", "ignore_worker_failures"),
        *("in_evaluation", "input", "input_config", "input_evaluation", "keep_per_episode_custom_metrics"),
        *("local_evaluator_tf_session_args", "local_tf_session_args", "log_level", "log_sys_usage", "logger_config"),
        *("lr_schedule", "memory", "memory_per_worker", "metrics_episode_collection_timeout_s"),
        *("metrics_num_episodes_for_smoothing", "metrics_smoothing_episodes", "min_iter_time_s", "monitor", "multiagent"),
        *("no_done_at_end", "no_eager_on_workers", "normalize_actions", "num_consecutive_worker_failures_tolerance"),
        *("num_cpus_for_driver", "num_cpus_per_worker", "num_envs_per_worker", "num_gpus", "num_gpus_per_worker"),
        *("object_store_memory", "object_store_memory_per_worker", "observation_space", "action_space"),
        *("output", "output_compress_columns", "output_config", "output_max_file_size", "placement_strategy"),
        *("postprocess_inputs", "preprocessor_pref", "record_env", "recreate_failed_workers", "remote_env_batch_wait_ms"),
        *("remote_worker_envs", "render_env", "rollout_fragment_length", "sample_async", "sample_batch_size"),
        *("sample_collector", "shuffle_buffer_size", "simple_optimizer", "soft_horizon", "synchronize_filters"),
        *("tf_session_args", "timesteps_per_iteration", "train_batch_size_per_worker", "use_pytorch"),
        *("worker_side_prioritization", "replay_sequence_length", "tf_single_threaded", "algo_class", "num_learner_workers"),
        *("num_cpus_for_local_worker", "num_gpus_per_learner_worker", "num_cpus_per_learner_worker", "local_gpu_idx"),
        *("framework_str", "is_atari", "auto_wrap_old_gym_envs", "create_env_on_local_worker", "enable_connectors"),
        *("validate_workers_after_construction", "restart_failed_sub_environments", "enable_tf1_exec_eagerly"),
        *("sampler_perf_stats_ema_coef", "worker_health_probe_timeout_s", "worker_restore_timeout_s", "learner_class"),
        *("max_requests_in_flight_per_sampler_worker", "callbacks_class", "policies", "policy_map_capacity"),
        *("policy_mapping_fn", "policies_to_train", "policy_states_are_swappable", "observation_fn", "count_steps_by"),
        *("input_", "actions_in_input_normalized", "offline_sampling", "evaluation_sample_timeout_s"),
        *("off_policy_estimation_methods", "ope_split_batch_by_episode", "custom_evaluation_function"),
        *("always_attach_evaluation_results", "enable_async_evaluation", "sync_filters_on_rollout_workers_timeout_s"),
        *("min_time_s_per_iteration", "min_train_timesteps_per_iteration", "min_sample_timesteps_per_iteration"),
        *("export_native_model_files", "checkpoint_trainable_policies_only", "logger_creator", "worker_cls"),
        *("rl_module_spec", "min_time_s_per_reporting", "min_train_timesteps_per_reporting"),
        *("min_sample_timesteps_per_reporting",),
    ]
)


def is_rllibs(values: Mapping[str, Any]) -> bool:
    """Whether a mapping holds a key that only RLlib has."""
    return bool(MARKS & set(values))


def translate(values: Mapping[str, Any], resolved: Resolved) -> Translation:
    """esker's values for a mapping with RLlib's keys. `resolved` tells what sigma and population will be in the end.

    RLlib's gradient has no 1/σ and esker's has, so an L2 coefficient is divided by sigma. A value that RLlib itself would
    reject raises UsageError.
    """
    done = Translation({})
    for name, value in values.items():
        if name in RENAMED:
            _rename(done, name, value, values)
        elif name in WITHOUT_EFFECT or _is_rllibs_own(name, value, values):
            done.needless.append(name)
        elif name not in ("model", "l2_coeff", "eval_prob", "observation_filter", "return_proc_mode", "report_length"):
            done.values[name] = value
    _odd_population(done, resolved)
    _model(done, values.get("model"))
    _filter(done, values)
    if "return_proc_mode" in values:
        if values["return_proc_mode"] != "centered_rank":
            raise UsageError(f"return_proc_mode is {values['return_proc_mode']!r}; RLlib has only centered_rank")
        done.put("RLlib", "return_proc_mode", "centered_rank", "shaping", "centered_rank")
    if "report_length" in values:
        done.notices.append("RLlib's report_length is not needed: every centre evaluation is reported")
    _derived(done, values, resolved)
    if done.needless:
        names = ", ".join(sorted(done.needless))
        done.notices.append(f"RLlib's {names}: no effect on its ES, and none here")
    return done


def _is_rllibs_own(name: str, value: Any, values: Mapping[str, Any]) -> bool:
    """Whether a name is one of RLlib's internals, or esker's with another meaning: its common lr, optimizer and no seed."""
    if name == "lr":
        return "stepsize" in values
    return name.startswith("_") or (name == "optimizer" and isinstance(value, Mapping)) or (name == "seed" and value is None)


def _rename(done: Translation, name: str, value: Any, values: Mapping[str, Any]) -> None:
    if value is None:  # as in a dump of its defaults
        return
    if name != "stepsize":  # RLlib's own lr, which its ES does not look at
        same_meaning(values, name, RENAMED[name])
    done.put("RLlib", name, value, RENAMED[name], value)
    if name == "action_noise_std":
        done.derived["action_noise"] = "action_space"


def _odd_population(done: Translation, resolved: Resolved) -> None:
    """RLlib's episodes come in pairs and are a minimum."""
    population = done.values.get("population")
    if not isinstance(population, int | float) or population % 2 != 1 or not resolved("antithetic", done.values, True):
        return
    done.values["population"] = int(population) + 1
    done.notices.append(f"episodes come in pairs: population = {int(population) + 1}")


def _model(done: Translation, model: Any) -> None:
    if model is None:
        return
    if not isinstance(model, Mapping):
        raise UsageError(f'model is {model!r}; expected RLlib\'s object, such as {{"fcnet_hiddens": [256, 256]}}')
    for name, target in (("fcnet_hiddens", "hidden"), ("fcnet_activation", "activation")):
        if model.get(name) is not None:
            done.put("RLlib", name, model[name], target, model[name])
    done.needless += [f"model.{name}" for name in model if name not in ("fcnet_hiddens", "fcnet_activation")]


def _filter(done: Translation, values: Mapping[str, Any]) -> None:
    if "observation_filter" not in values:
        return
    chosen = values["observation_filter"]
    if not isinstance(chosen, str) or chosen not in FILTERS:
        raise UsageError(f"observation_filter is {chosen!r}; expected one of {', '.join(FILTERS)}")
    done.put("RLlib", "observation_filter", chosen, "normalize_observations", FILTERS[chosen])


def _derived(done: Translation, values: Mapping[str, Any], resolved: Resolved) -> None:
    """What depends on options that another layer may decide."""
    if "l2_coeff" in values:
        coefficient, sigma = (
            number("l2_coeff", values["l2_coeff"], low=0),
            number("sigma", resolved("sigma", done.values), above=0),
        )
        done.derive("weight_decay", coefficient / sigma, "sigma")
        done.notices.append(
            f"RLlib's l2_coeff = {coefficient:g} is weight_decay = {coefficient / sigma:g} (divided by sigma = {sigma:g})"
        )
    if "eval_prob" in values:
        share, population = number("eval_prob", values["eval_prob"], low=0, high=1), resolved("population", done.values)
        episodes = max(1, round(share * number("population", population, above=0)))
        done.derive("center_episodes", episodes, "population")
        done.notices.append(f"RLlib's eval_prob = {share:g} is center_episodes = {episodes} every generation")
