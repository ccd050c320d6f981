"""A preset next to the requested options: what belongs to an overridden choice is dropped, with a notice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from esker.config.build import whole_number
from esker.config.options import NETWORK_OPTIONS

Options = Mapping[str, Any]
Rule = Callable[[Options, Options, type], tuple[dict[str, Any], list[str]]]
LEFT_OUT = object()


def fit_preset(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """The preset's options that fit the request, and a notice for each change."""
    fitted, notices = dict(base), []
    for rule in RULES:
        changes, texts = rule(fitted, asked, config)
        fitted = {name: value for name, value in (fitted | changes).items() if value is not LEFT_OUT}
        notices += texts
    return fitted, notices


def _mean_rule(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """The parameter of one rule is not another rule's: published with one size for all four, a baseline is negative."""
    rule, param = asked.get("mean_update"), base.get("mean_update_param")
    if param is None or rule is None or "mean_update_param" in asked:
        return {}, []
    own = -abs(param) if rule == "baseline-absolute" else abs(param)
    if own == param:
        return {}, []
    text = f"mean_update_param = {own:g}, as published for {rule} ({param:g} is for another rule)"
    return {"mean_update_param": own}, [text]


def _network(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """Layers and initial weights belong to their network; requesting layers requests a network that has some."""
    changes: dict[str, Any] = {}
    network = asked.get("network")
    if network is None and "network" in base:
        wanted = [name for name in ("hidden", "activation") if name in asked]
        if not wanted or base["network"] in NETWORK_OPTIONS[wanted[0]]:
            return {}, []
        network, changes = "mlp", {"network": LEFT_OUT}
    if network is None:
        return {}, []
    for name, networks in NETWORK_OPTIONS.items():
        alien = network not in networks or (base.get(name) == "zero" and network != "linear")
        if name in base and name not in asked and alien:
            changes[name] = LEFT_OUT
    if network != base.get("network", "mlp"):  # which sees a game's screen in its own size
        changes |= {
            name: LEFT_OUT for name in ("screen_size", "screen_width", "frame_stack") if name in base and name not in asked
        }
    return changes, _left_out(base, changes, f"network {network}")


def _optimizer(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """A learning rate is that of its optimizer."""
    before = base.get("optimizer", _default(config, "optimizer"))
    optimizer = asked.get("optimizer", before)
    if optimizer == before:
        return {}, []
    names = [name for name in ("lr", "momentum", "max_speed") if name in base and name not in asked]
    changes = dict.fromkeys(names, LEFT_OUT)
    return changes, _left_out(base, changes, f"optimizer {optimizer}")


def _shares(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """Counts among the members keep their share of the population."""
    before, population = base.get("population", _default(config, "population")), _whole(asked.get("population"))
    if not isinstance(before, int) or population is None or population == before:
        return {}, []
    names = [name for name in ("top_directions", "rl_population") if base.get(name) and name not in asked]
    changes = {name: max(1, round(base[name] * population / before)) for name in names}
    texts = [f"{name} = {value}: the preset's share of a population of {population}" for name, value in changes.items()]
    if "min_steps" in base and "min_steps" not in asked:
        texts.append(
            f"the preset adds members beyond the population to {base['min_steps']:,} steps; without: --min-steps none"
        )
    return changes, texts


def _cap(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """The rule of growth belongs to a cap that grows."""
    cap = asked.get("adaptive_cap", "threshold")
    if cap == "threshold" or "cap_growth" not in base or "cap_growth" in asked:
        return {}, []
    changes = {"cap_growth": LEFT_OUT}
    return changes, _left_out(base, changes, f"adaptive_cap {cap or 'none'}")


def _starts(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """A warm start is the only one, one start has no length of its own, and several need steps beyond theirs."""
    given, steps, length = (_whole(asked.get(name)) for name in ("starts", "steps", "start_steps"))
    if asked.get("init_from") is not None and given is None:
        why = "init_from"
    elif given == 1:
        why = "starts 1"
    elif given is None and length is None and steps and steps <= base.get("starts", 1) * base.get("start_steps", 0):
        why = f"{steps:,} steps"
    else:
        return {}, []
    changes = {name: LEFT_OUT for name in ("starts", "start_steps") if name in base and name not in asked}
    return changes, _left_out(base, changes, why)


def _processes(base: Options, asked: Options, config: type) -> tuple[dict[str, Any], list[str]]:
    """An exact asynchronous run has one actor; other vectorizers need no fresh environments."""
    changes = {}
    if asked.get("deterministic") in (True, "true") and "workers" in base and "workers" not in asked:
        changes["workers"] = LEFT_OUT
    if asked.get("vectorizer", "gymnasium") != "gymnasium" and "fresh_environments" not in asked:
        changes |= {name: LEFT_OUT for name in ("fresh_environments",) if name in base}
    if asked.get("vectorizer") == "envpool":
        changes |= {name: LEFT_OUT for name in ("crop", "actions", "fire") if name in base and name not in asked}
    return changes, _left_out(base, changes, "--deterministic" if "workers" in changes else f"{asked.get('vectorizer')}")


def _left_out(base: Options, changes: Options, choice: str) -> list[str]:
    names = ", ".join(f"{name} = {_text(base[name])}" for name in changes)
    return [f"left out for {choice}: the preset's {names}"] if names else []


def _whole(value: Any) -> int | None:
    """A count, also as a flag's text, as 1e6 is; None for what is none, which is refused later."""
    try:
        return None if value is None else whole_number(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _default(config: type, name: str) -> Any:
    return next((field.default for field in fields(config) if field.name == name), None)


RULES: tuple[Rule, ...] = (_mean_rule, _network, _optimizer, _shares, _cap, _starts, _processes)
