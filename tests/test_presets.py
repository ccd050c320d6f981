"""Presets: every file is a valid configuration, is listed, and says whether there is evidence."""

import json
import re
import statistics
from pathlib import Path

import pytest

from esker import presets
from esker.cli import main
from esker.config.environment import CapGrowth
from esker.runs.request import configure
from esker.worlds.environments import resolve

NAMES = sorted(name for name, preset in presets.load_all().items() if preset.algo == "es")
MUJOCO = ("Swimmer-v5", "Hopper-v5", "HalfCheetah-v5", "Walker2d-v5", "Humanoid-v5")
WANTED = {"CartPole-v1", "Acrobot-v1", "LunarLander-v3", *MUJOCO, "ALE/Pong-v5"}


@pytest.mark.parametrize("name", NAMES)
def test_the_preset_resolves_to_a_checked_configuration_of_its_environment(name):
    preset = presets.find(name, "es")
    asked = configure(preset.env, {}, preset=name)
    config, environment, notices = asked.config, asked.environment, asked.notices
    assert environment.name == preset.env == resolve(preset.env)[0].name
    for option, value in preset.options.items():
        found = getattr(config, option)
        plain = vars(found) if isinstance(found, CapGrowth) else found
        assert (list(plain) if isinstance(plain, tuple) else plain) == value
    assert any(name in notice for notice in notices)


def test_every_environment_of_the_list_has_a_preset_that_it_gets_by_itself():
    assert {env for env in WANTED if presets.for_environment(env, "es") is None} == set()


def test_the_list_names_evidence_or_says_untested(capsys):
    assert main(["presets", "--json"]) == 0
    listed = {entry["name"]: entry["evidence"] for entry in json.loads(capsys.readouterr().out)}
    assert set(NAMES) <= set(listed)
    assert main(["presets"]) == 0
    assert "untested" in capsys.readouterr().out or all(listed.values())


def test_evidence_that_is_claimed_is_that_of_the_stored_result():
    root = Path(__file__).parent.parent
    for preset in presets.load_all().values():
        found = re.match(r"median ([\d,-]+), worst ([\d,-]+) of (\d+) seeds .*\((\S+\.json)\)$", preset.evidence or "")
        assert preset.evidence is None or found, preset.name
        if found:
            stored = json.loads((root / found[4]).read_text())
            means = [seed["evaluation"]["mean"] for seed in stored["seeds"]]
            claimed = [int(part.replace(",", "")) for part in found.groups()[:3]]
            assert stored["preset"] == preset.name
            assert claimed == [round(statistics.median(means)), round(min(means)), len(means)], preset.name


def test_every_preset_has_three_seeds() -> None:
    seen = {name: re.findall(r"of (\d+) seeds", preset.evidence or "") for name, preset in presets.load_all().items()}
    assert not {name for name, count in seen.items() if not count or int(count[0]) < 3}


def test_of_two_with_evidence_the_better_one_is_chosen() -> None:
    chosen = presets.for_environment("HalfCheetah-v5", "es")
    assert chosen is not None
    assert (chosen.name, presets.load_all()["halfcheetah/es"].evidence is not None) == ("halfcheetah/ars", True)


def test_a_request_that_does_not_fit_the_chosen_preset_names_the_preset(capsys) -> None:
    assert main(["train", "Hopper-v5", "--top-directions", "12"]) == 2
    said = capsys.readouterr().err.strip()
    assert said == (
        "esker: error: top_directions is 12; a population of 16 has 8 "
        "(by preset hopper/ars, chosen for Hopper-v5; --preset none turns it off)"
    )


def test_evidence_names_a_file_that_holds_every_seed() -> None:
    root = Path(presets.__file__).parents[2]
    for preset in presets.load_all().values():
        if preset.evidence is not None:
            file = root / preset.evidence.split("(")[-1].rstrip(")")
            stored = json.loads(file.read_text())
            means = [seed["evaluation"]["mean"] for seed in stored["seeds"]]
            assert stored["preset"] == preset.name
            assert (
                f"median {statistics.median(means):,.0f}, worst {min(means):,.0f} of {len(means)} seeds" in preset.evidence
            )


def test_no_preset_says_untested_next_to_its_evidence():
    wrong = [name for name, preset in presets.load_all().items() if preset.evidence and "untested" in preset.about]
    assert wrong == []


def test_default_algorithm_names_the_one_whose_preset_has_learnt_the_environment():
    (found,) = [notice for notice in configure("HalfCheetah-v5", {}).notices if "esker train" in notice]
    assert found.endswith("esker train HalfCheetah-v5 --algo aes-rl")
    assert "median 11,880" in found
    (found,) = [notice for notice in configure("LunarLanderContinuous-v3", {}).notices if "esker train" in notice]
    assert found.startswith("pgpe has learnt it with its preset (median 265")
    assert "solved on all five" in found
    asked = [configure("HalfCheetah-v5", {}, algo="es"), configure("HalfCheetah-v5", {}, preset="halfcheetah/ars")]
    assert not [
        notice for one in (*asked, configure("CartPole-v1", {})) for notice in one.notices if "esker train" in notice
    ]


def test_preset_that_is_named_as_better_is_what_its_algorithm_takes():
    named = [preset for preset in presets.load_all().values() if preset.instead_of is not None]
    assert [presets.for_environment(preset.env, preset.algo) for preset in named] == named


@pytest.mark.parametrize(
    ("env", "algo", "options", "expected", "notice"),
    [
        ("HalfCheetah-v5", None, {"population": 8}, {"top_directions": 2}, "top_directions = 2"),
        ("HalfCheetah-v5", None, {"population": "8"}, {"top_directions": 2}, "top_directions = 2"),  # as a flag gives it
        ("HalfCheetah-v5", None, {"population": 8, "top_directions": 3}, {"top_directions": 3}, None),
        ("HalfCheetah-v5", None, {"hidden": (32, 32)}, {"network": "mlp", "initializer": "xavier"}, "network = linear"),
        ("HalfCheetah-v5", None, {"network": "mlp"}, {"initializer": "xavier", "lr": 0.0012}, "initializer = zero"),
        (
            "HalfCheetah-v5",
            None,
            {"optimizer": "adam"},
            {"lr": 0.01},
            "left out for optimizer adam: the preset's lr = 0.0012",
        ),
        (
            "HalfCheetah-v5",
            None,
            {"adaptive_cap": "none"},
            {"adaptive_cap": None, "cap_growth": CapGrowth()},
            "left out for adaptive_cap none: the preset's cap_growth = initial 250",
        ),
        (
            "HalfCheetah-v5",
            None,
            {"init_from": "somewhere"},
            {"starts": 1, "start_steps": 1_000_000},
            "left out for init_from: the preset's starts = 4, start_steps = 3000000",
        ),
        ("HalfCheetah-v5", None, {"starts": 1}, {"start_steps": 1_000_000}, "left out for starts 1"),
        ("HalfCheetah-v5", None, {"starts": 2}, {"start_steps": 3_000_000}, None),
        ("HalfCheetah-v5", None, {"optimizer": "adam", "lr": 0.3}, {"lr": 0.3}, None),
        ("HalfCheetah-v5", None, {"optimizer": "sgd"}, {"lr": 0.0012}, None),
        ("HalfCheetah-v5", None, {"sigma": 0.1}, {"lr": 0.0012, "top_directions": 16}, None),
        ("Swimmer-v5", "cem-rl", {"population": 4}, {"rl_population": 2}, "rl_population = 2"),
        ("HalfCheetah-v5", "aes-rl", {"deterministic": True}, {"workers": None}, "left out for --deterministic"),
        (
            "ALE/Pong-v5",
            None,
            {"network": "nature-cnn"},
            {"channels": 32, "lstm_size": 256},
            "left out for network nature-cnn",
        ),
        ("Pendulum-v1", "td3", {"training_steps": 500}, {"initial_steps": 1000}, "all of the 500 training steps are random"),
        ("Pendulum-v1", "td3", {"training_steps": 5000}, {"initial_steps": 1000}, None),
    ],
)
def test_option_beside_a_preset_takes_along_what_depends_on_it(env, algo, options, expected, notice):
    asked = configure(env, options, algo=algo)
    assert {name: getattr(asked.config, name) for name in expected} == expected
    said = [text for text in asked.notices if not text.startswith("preset ") and "esker train" not in text]
    assert [notice in text for text in said] == [True] if notice else said == []
