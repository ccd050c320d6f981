"""Command-line flags made from the typed configuration."""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, Literal, NoReturn, Union

from esker.config.build import default_of
from esker.config.options import section_of
from esker.errors import UsageError, nearest


class Parser(argparse.ArgumentParser):
    """argparse that answers a wrong request with one line and the nearest flag."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise what `main` prints."""
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def parse_strictly(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse; an unknown flag is refused with the nearest known one."""
        namespace, unknown = self.parse_known_args(arguments)
        if unknown:
            parser = getattr(namespace, "parser", self)
            flag = unknown[0].split("=")[0]
            known = [option for action in parser._actions for option in action.option_strings]
            raise UsageError(f"unknown argument {flag!r}{nearest(flag, known)}; see `{parser.prog} --help`")
        return namespace


def add_options(parser: argparse.ArgumentParser, config: type[Any], only: Iterable[str] | None = None) -> None:
    """A flag for every option, under its section; values stay text until the configuration converts them."""
    hints = typing.get_type_hints(config)
    wanted = None if only is None else set(only)
    groups: dict[str, Any] = {}
    for option in sorted(fields(config), key=lambda f: _order(config, f.name)):
        if option.name in ("env", "algo") or (wanted is not None and option.name not in wanted):
            continue
        section = section_of(config, option.name)
        if section not in groups:
            groups[section] = parser.add_argument_group(section.lower())
        _add(groups[section], option, hints[option.name])


def add_all_options(
    parser: argparse.ArgumentParser, configs: Mapping[str, type[Any]], only: Iterable[str] | None = None
) -> None:
    """The flags of every algorithm, each once; those that only some have are listed under these."""
    first, *others = configs.values()
    add_options(parser, first, only)
    known = {option.name for option in fields(first)}
    wanted = None if only is None else set(only)
    groups: dict[str, Any] = {}
    for config in others:
        hints = typing.get_type_hints(config)
        for option in sorted(fields(config), key=lambda f: _order(config, f.name)):
            if option.name in known or (wanted is not None and option.name not in wanted):
                continue
            known.add(option.name)
            having = [name for name, other in configs.items() if option.name in {f.name for f in fields(other)}]
            heading = "options of " + ", ".join(having)
            if heading not in groups:
                groups[heading] = parser.add_argument_group(heading)
            _add(groups[heading], option, hints[option.name])


def given_any(namespace: argparse.Namespace, configs: Mapping[str, type[Any]]) -> dict[str, Any]:
    """The options that were given as flags, whichever algorithm they belong to."""
    return {name: value for config in configs.values() for name, value in given(namespace, config).items()}


def given(namespace: argparse.Namespace, config: type[Any]) -> dict[str, Any]:
    """The options that were given as flags."""
    names = {option.name for option in fields(config)}
    return {name: value for name, value in vars(namespace).items() if name in names and name not in ("env", "algo")}


def _order(config: type[Any], name: str) -> int:
    sections = [(base.__doc__ or "").strip() for base in config.__mro__[1:]]
    return sections.index(section_of(config, name)) if section_of(config, name) in sections else -1


def _add(group: Any, option: Field[Any], hint: Any) -> None:
    flag = "--" + option.name.replace("_", "-")
    text = option.metadata["help"].replace("%", "%%")
    default = default_of(option)
    if hint is bool:
        shown = f"{text} (default: {'on' if default else 'off'})"
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=shown)
        return
    if default not in (None, (), {}):
        text += f" (default: {_text(default)})"
    action = "append" if hint == tuple[str, ...] else "store"
    group.add_argument(flag, action=action, default=argparse.SUPPRESS, metavar=_metavar(hint), help=text)


def _text(value: Any) -> str:
    return ",".join(str(part) for part in value) if isinstance(value, tuple) else str(value)


def _metavar(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _metavar(next(a for a in arguments if a is not types.NoneType))
    if origin is Literal:
        return "{" + ",".join(str(a) for a in arguments) + "}"
    if origin is tuple:
        return "NAME,NAME" if typing.get_origin(arguments[0]) is Literal else "N,N" if arguments[0] is int else "NAME"
    if origin is dict:
        return "JSON"
    return {int: "N", float: "X", str: "TEXT"}[hint]
