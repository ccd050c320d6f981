"""The search space of a sweep: what is understood, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from esker.config.options import ESConfig
from esker.errors import UsageError
from esker.sweep.python import _lines
from esker.sweep.space import Choices, Range, default_space, from_table, options_of, parse_space, to_table


def test_ranges_and_choices_take_the_type_of_their_option() -> None:
    texts = ["lr=0.001..0.1:log", "population=10..50", "shaping=raw,sign", "hidden=none,64x64", "antithetic=true,false"]
    assert parse_space(texts, ESConfig) == {
        "lr": Range(0.001, 0.1, log=True),
        "population": Range(10, 50, whole=True),
        "shaping": Choices(("raw", "sign")),
        "hidden": Choices(("none", "64x64")),
        "antithetic": Choices((True, False)),
    }


def test_a_file_says_the_same_as_arguments(tmp_path: Path) -> None:
    file = tmp_path / "space.toml"
    file.write_text(
        'sigma = "0.01..0.1:log"\nhidden = [[32, 32], [64]]\n'
        "[lr]\nlow = 0.01\nhigh = 0.1\npoints = 3\n[seed]\nchoices = [1, 2]\n"
    )
    inline = ["sigma=0.01..0.1:log", "hidden=32x32,64", "lr=0.01..0.1:3", "seed=1,2"]
    assert parse_space([str(file)], ESConfig) == parse_space(inline, ESConfig)


def test_lists_from_python_are_choices_of_lists() -> None:
    space = {"hidden": [(8, 8), [16], ()], "actions": [("RIGHT", "LEFT"), ("NOOP", "LEFT")], "seed": (1, 2)}
    assert parse_space(_lines(space), ESConfig) == {
        "hidden": Choices(("8x8", "16", "none")),
        "actions": Choices(("RIGHTxLEFT", "NOOPxLEFT")),
        "seed": Choices((1, 2)),
    }


def test_a_space_survives_its_file() -> None:
    space = parse_space(["lr=0.01..0.1:log:4", "population=4..8", "hidden=16,32x32", "min_steps=100..200"], ESConfig)
    assert from_table(to_table(space), ESConfig) == space


def test_grid_points_are_spread_evenly_or_in_ratio() -> None:
    assert Range(1, 100, log=True, points=3).grid("lr") == pytest.approx([1, 10, 100])
    assert Range(0.0, 1.0, points=5).grid("lr") == [0, 0.25, 0.5, 0.75, 1]
    assert Range(2, 5, whole=True).grid("seed") == [2, 3, 4, 5]
    assert Range(10, 1000, log=True, whole=True, points=3).grid("population") == [10, 100, 1000]


def test_parameters_become_options() -> None:
    params = {"population": 11, "hidden": "32x16", "lr": 0.1}
    assert options_of(params, ESConfig, antithetic=True) == {"population": 12, "hidden": "32,16", "lr": 0.1}
    assert options_of({"actions": "RIGHTxLEFT"}, ESConfig, antithetic=True) == {"actions": "RIGHT,LEFT"}
    assert options_of(params | {"antithetic": False}, ESConfig, antithetic=True)["population"] == 11


def test_the_default_space_leaves_out_what_is_fixed() -> None:
    space = default_space(ESConfig(), taken={"lr"})
    assert "hidden" not in default_space(ESConfig(network="linear"), taken={})
    assert set(space) == {"sigma", "weight_decay", "antithetic", "shaping", "hidden", "population"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lrr=0.1..1", "unknown option 'lrr' in the space; did you mean 'lr'?"),
        ("lr=0.1..0.01", "an empty range"),
        ("lr=0.1..0.1", "an empty range"),
        ("weight_decay=0..1:log", "a logarithmic range starts above 0"),
        ("lr=-1..1", "lr is -1.0; expected a number above 0"),
        ("lr=a..b", "lr is 'a'; expected a number"),
        ("population=1..5", "population is 1; expected a number at least 2"),
        ("population=2.5..5", "expected a whole number"),
        ("shaping=1..2", "shaping is not a number"),
        ("shaping=raww,raw", "shaping is 'raww'; expected one of"),
        ("hidden=64,64", "layers are written 64x64"),
        ("crop=34,194", "crop is '34' in the space; expected two or more items; rows are written 34x194"),
        (
            "actions=NOOPxLEFT,LEFT",
            "actions is 'LEFT' in the space; expected two or more items; lists are written RIGHTxLEFT",
        ),
        ("workers=1,2", "workers cannot be swept: it does not change what a run computes; give it as a flag"),
        ("env_kwargs=1,2", "env_kwargs cannot be swept: all trials share it; give it as a flag"),
        ("cap_growth=1,2", "cap_growth cannot be swept: all trials share it; give it as a flag"),
        ("cap_factor=1.2..2", "cap_factor cannot be swept: it is the field factor of cap_growth; give that as a flag"),
        ("learning_rate=0.1..1", "unknown option 'learning_rate' in the space; did you mean 'lr'?"),
        ("critics=1,2", "critics was removed: there is one critic"),
        ("lr=0.1..1:lg", "'lg' is neither 'log' nor a number of grid points"),
        ("lr=0.1..1:1", "expected a whole number of 2 to"),
        ("lr=", "write name=low..high"),
        ("nowhere.toml", "neither a file nor a range"),
    ],
)
def test_a_wrong_space_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_space([text], ESConfig)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
