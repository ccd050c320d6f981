"""Command-line flags made from the typed configuration."""

from __future__ import annotations

import argparse
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, asdict, fields, is_dataclass
from typing import Any, Literal, NoReturn, Union

from esker.config.build import default_of, takes_path
from esker.errors import UsageError, nearest


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """One line for most options at 80 columns; a switch and its opposite are one, and long lists of names are wrapped."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if isinstance(action, argparse.BooleanOptionalAction):
            return action.option_strings[0].replace("--", "--[no-]", 1)
        text = super()._format_action_invocation(action)
        indent = " " * (text.find("{") + 3)
        lines = textwrap.wrap(text.replace(",", ", "), self._width - 4, break_on_hyphens=False)
        return text if len(text) < self._width - 2 else f"\n{indent}".join(lines).replace(", ", ",")


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line that names the nearest flag."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", HelpFormatter)
        super().__init__(allow_abbrev=False, **options)
        self.explain: Callable[[str], None] | None = None  # raises a more helpful error for some unknown flags

    def error(self, message: str) -> NoReturn:
        """Raise the UsageError that `main` prints."""
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def parse_strictly(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse; an unknown flag is refused with the nearest known one."""
        namespace, unknown = self.parse_known_args(arguments)
        if unknown:
            parser = getattr(namespace, "parser", self)
            flag = unknown[0].split("=")[0]
            known = [option for action in parser._actions for option in action.option_strings]
            if parser.explain is not None:
                parser.explain(flag)
            raise UsageError(f"unknown argument {flag!r}{nearest(flag, known)}; see `{parser.prog} --help`")
        return namespace


def add_options(
    parser: argparse.ArgumentParser,
    config: type[Any],
    only: Iterable[str] | None = None,
    shown: Iterable[str] | None = None,
    defaults: bool = True,
) -> None:
    """A flag for every option, under its section; values stay text until the configuration converts them.

    `only` limits the flags, `shown` those that the help lists; `defaults`: whether the help shows default values.
    """
    hints = typing.get_type_hints(config)
    wanted = None if only is None else set(only)
    listed = None if shown is None else set(shown)
    groups: dict[str, Any] = {}
    for option in sorted(fields(config), key=lambda f: _order(config, f.name)):
        if option.name in ("env", "algo") or (wanted is not None and option.name not in wanted):
            continue
        section = section_of(config, option.name)
        if section not in groups:
            groups[section] = parser.add_argument_group(section.lower())
        text = option.metadata["help"] + _default(option, hints[option.name])
        text = (text if defaults else re.sub(r" \(default: [^()]*\)", "", text)).replace("%", "%%")
        _add(groups[section], option, hints[option.name], text if listed is None or option.name in listed else None)


def _order(config: type[Any], name: str) -> int:
    sections = [(base.__doc__ or "").strip() for base in config.__mro__[1:]]
    return sections.index(section_of(config, name)) if section_of(config, name) in sections else -1


def _default(option: Field[Any], hint: Any) -> str:
    default = default_of(option)
    if hint is bool:
        return f" (default: {'on' if default else 'off'})"
    return "" if default in (None, (), {}) else f" (default: {_text(default)})"


def _add(group: Any, option: Field[Any], hint: Any, text: str | None) -> None:
    flag, shown = "--" + option.name.replace("_", "-"), argparse.SUPPRESS if text is None else text
    if hint is bool:
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=shown)
        return
    if option.metadata.get("repeatable"):
        group.add_argument(flag, action="append", default=argparse.SUPPRESS, metavar="NAME", help=shown)
        return
    group.add_argument(flag, default=argparse.SUPPRESS, metavar=_metavar(hint), help=shown)


def _text(value: Any) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return ", ".join(f"{name} {part}" for name, part in asdict(value).items())
    return ",".join(str(part) for part in value) if isinstance(value, tuple) else str(value)


def _metavar(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if takes_path(hint):
        return _metavar(arguments[0])[:-1] + ",module:name}"
    if origin in (Union, types.UnionType):
        return _metavar(next(a for a in arguments if a is not types.NoneType))
    if origin is Literal:
        return "{" + ",".join(str(a) for a in arguments) + "}"
    if origin is tuple:
        return "N,N" if arguments[0] is int else "NAME,NAME"
    if origin is dict or is_dataclass(hint):
        return "JSON"
    return {int: "N", float: "X", str: "TEXT"}[hint]


def section_of(config: type[Any], name: str) -> str:
    """The heading under which an option is listed."""
    for base in config.__mro__[1:]:
        if base.__name__.endswith("Options") and name in getattr(base, "__annotations__", {}):
            return (base.__doc__ or "").strip()
    return "What to train"
