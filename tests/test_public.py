"""The public API only grows: what tests/data/public.json lists is there, and takes what it took."""

from __future__ import annotations

import json
from dataclasses import fields

from public import public
from support import HERE

from esker.algorithms import registry
from esker.config.legacy import modernize

FROZEN = json.loads((HERE / "data" / "public.json").read_text())
HOW = "deprecate before removing (docs/versions.md); for what is new: python tests/public.py > tests/data/public.json"


def test_no_public_name_and_no_parameter_is_gone() -> None:
    now = public()["names"]
    for name, parts in FROZEN["names"].items():
        for part, taken in parts.items():
            assert part in now.get(name, {}), f"esker.{name}.{part} is gone; {HOW}"
            missing = {text.removesuffix(" required") for text in taken} - {
                text.removesuffix(" required") for text in now[name][part]
            }
            assert not missing, f"esker.{name}.{part} no longer takes {missing}; {HOW}"


def test_no_parameter_became_required() -> None:
    now = public()["names"]
    for name, parts in FROZEN["names"].items():
        for part, taken in parts.items():
            new = {text for text in now[name][part] if text.endswith(" required")} - set(taken)
            assert not new, f"esker.{name}.{part} demands {new}; {HOW}"


def test_what_is_new_is_recorded() -> None:
    assert public()["names"].keys() == FROZEN["names"].keys(), HOW


def test_no_command_and_no_flag_that_people_script_against_is_gone() -> None:
    assert set(FROZEN["commands"]) <= set(public()["commands"]), HOW
    options = {field.name.replace("_", "-") for field in fields(registry.options_of("es"))}
    assert set(FROZEN["flags"]) <= options, HOW


def test_an_old_name_of_an_option_is_understood_with_a_notice() -> None:
    assert modernize({"actors": 3}) == ({"workers": 3}, ["actors = 3 is workers = 3"])
