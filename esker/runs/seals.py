"""Checksums inside small text files, so that one wrong bit in them is seen; files of older versions have none."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Collection, Mapping
from typing import Any

KEY = "checksum"
FIRST_LINE = re.compile(r"# checksum ([0-9a-f]{64})\n")


class Broken(ValueError):
    """A file that is not what was written."""


def seal_json(values: Mapping[str, Any]) -> str:
    """An object as JSON that begins with the checksum of everything else in it."""
    plain = json.loads(json.dumps(values))
    return json.dumps({KEY: _digest(plain), **plain}, indent=1) + "\n"


def open_json(text: str, unsealed: Collection[str]) -> dict[str, Any]:
    """The object in a text. One that was altered raises Broken; one without a checksum must begin as old ones did."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Broken(f"it is not JSON ({error})") from error
    if not isinstance(values, dict):
        raise Broken(f"it holds a {type(values).__name__}; expected an object")
    if KEY in values:
        if values.pop(KEY) != _digest(values):
            raise Broken("its checksum does not match")
    elif next(iter(values), "") not in unsealed:
        raise Broken("its checksum is missing")
    return values


def seal_toml(text: str) -> str:
    """A TOML text behind a comment with its checksum."""
    return f"# checksum {hashlib.sha256(text.encode()).hexdigest()}\n{text}"


def open_toml(text: str) -> dict[str, Any]:
    """The values in a TOML text. One that was altered raises Broken; one that begins with no comment has no checksum."""
    if text.startswith("#"):
        found = FIRST_LINE.match(text)
        if found is None or hashlib.sha256(text[found.end() :].encode()).hexdigest() != found[1]:
            raise Broken("its checksum does not match")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Broken(" ".join(f"it is not TOML ({error})".split())) from error
    if not values:
        raise Broken("it is empty")
    return values


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
