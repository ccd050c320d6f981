"""What a request names: algorithm and environment, from flags, a preset's name or a configuration of AES-RL's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from esker import presets
from esker.config.aesrl import translate
from esker.config.options import ALGORITHMS
from esker.errors import UsageError, nearest

SPECIAL = (None, "auto", "none")  # presets that name no algorithm


def settle_request(
    algo: str | None, env: Any, preset: str | None, given: Mapping[str, Any]
) -> tuple[str, Any, dict[str, Any], list[str]]:
    """Algorithm, environment, values and notices. What is unknown, missing or contradictory raises UsageError."""
    if algo is not None and algo not in ALGORITHMS:
        raise UsageError(f"unknown algorithm {algo!r}{nearest(algo, ALGORITHMS)}; expected one of {', '.join(ALGORITHMS)}")
    translated = translate(given, algo)
    notices = list(translated.notices)
    chosen = algo or translated.algo or _of_preset(preset) or "es"
    if algo is None and chosen != "es":
        notices.insert(0, f"algorithm {chosen}, as the {'configuration' if translated.algo else 'preset'} says")
    if (named := _of_preset(preset)) is not None and named != chosen:
        raise UsageError(f"preset {preset!r} is for {named}, and the algorithm is {chosen}; use --algo {named}")
    if env is None:
        if translated.env is None:
            raise UsageError("the following arguments are required: ENV, as in: esker train CartPole-v1")
        env = translated.env
    elif translated.env is not None and translated.env != env:
        notices.append(f"AES-RL's env_name = {translated.env} gives way to the environment of the request")
    return chosen, env, translated.values, notices


def _of_preset(name: str | None) -> str | None:
    """The algorithm of a preset that is named in full."""
    found = None if name in SPECIAL else presets.load_all().get(str(name))
    return found.algo if found else None


def refuse_others(algo: str, names: Iterable[str]) -> None:
    """Options that only other algorithms have raise UsageError, saying which."""
    owners = {kind: {f.name for f in fields(config)} for kind, config in ALGORITHMS.items()}
    for name in names:
        having = [kind for kind, known in owners.items() if name in known]
        if having and algo not in having:
            raise UsageError(f"{name} is not an option of {algo}; it belongs to {', '.join(having)}")
