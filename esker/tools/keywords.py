"""Writes `esker/config/keywords.py`: the options as types, so that editors and mypy know every keyword.

    python -m esker.tools.keywords > esker/config/keywords.py

A test compares the file with what this module writes.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union

from esker.algorithms import registry
from esker.config.evolution import EvolutionConfig
from esker.config.resume import ResumeOptions

HEAD = '''"""The options of `train`, `resume` and `Evolution` as types. Written by esker.tools.keywords; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict
'''
NOT_KEYWORDS = {"env", "algo", "model"}
ANY_OBJECT = {"network"}  # also takes Python objects
PATHS = {"run_dir", "init_from", "working_dir"}


def source() -> str:
    """The text of the file."""
    algorithms = [registry.find(name).config for name in registry.BUILT_IN]
    parts = [
        _typed_dict(
            "TrainOptions", "Every option of every algorithm; those of the one in use are checked when it runs.", algorithms
        ),
        _typed_dict("ResumeChanges", "What a resumed run may change.", [ResumeOptions]),
        _typed_dict("EvolutionOptions", "The options of `esker.Evolution`.", [EvolutionConfig]),
    ]
    return HEAD + "".join(f"\n\n{part}" for part in parts)


def _typed_dict(name: str, about: str, configs: list[type[Any]]) -> str:
    found: dict[str, list[str]] = {}
    for config in configs:
        hints = typing.get_type_hints(config)
        for option in fields(config):
            if option.name not in NOT_KEYWORDS:
                found.setdefault(option.name, []).extend(_spelled(option.name, hints[option.name]))
    lines = [
        f"    {key}: {' | '.join(dict.fromkeys(sorted(types_, key=_last_none)))}\n" for key, types_ in sorted(found.items())
    ]
    return f'class {name}(TypedDict, total=False):\n    """{about}"""\n\n{"".join(lines)}'


def _last_none(text: str) -> bool:
    return text == "None"


def _spelled(name: str, hint: Any) -> list[str]:
    """The types that a keyword takes, as they are written."""
    if name in ANY_OBJECT:
        return ["Any"]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return [text for part in arguments for text in _spelled(name, part)]
    if hint is types.NoneType:
        return ["None"]
    if origin is Literal:
        return [f"Literal[{', '.join(map(_quoted, arguments))}]"]
    if origin is tuple:
        return [f"Sequence[{_spelled(name, arguments[0])[0]}]", "str"]
    if origin is dict or is_dataclass(hint):
        return ["Mapping[str, Any]", "str"]
    return [hint.__name__, *(["Path"] if name in PATHS else [])]


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


if __name__ == "__main__":
    print(source(), end="")
