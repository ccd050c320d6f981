"""The page for users of other systems: every command on it is run, shortened by flags, and does what the page says."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from esker.cli import main
from esker.errors import UsageError
from esker.runs.request import configure

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coming-from.md"
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.S) for line in block.splitlines()]
SMALL = "--population 4 --generations 1 --center-episodes 1 --max-episode-steps 5 --table-size 400000 --workers 0"
HYBRID = "--hidden 8 --initial-steps 20 --batch-size 8 --center-episodes 1 --max-episode-steps 10 --generations 1"
ALONE = HYBRID + " --workers 0 --results-per-generation 1 --deterministic"
SERIAL = HYBRID + " --workers 0"
# By what a command contains, the first that fits: the flags that shorten it.
SHORTER = [
    ("--parallel-critic", HYBRID + " --critic-chunk 10"),
    ("td3.json --ray", ""),
    ("td3.json", SERIAL + " --generation-steps 20"),
    ("pcemrl.json", SERIAL),
    ("acemrl.json", ALONE),
    ("cemrl.json", SERIAL),
    ("opo.json", ALONE),
    ("aesrl.json", ALONE),
    ("--algo aes-rl", ALONE),
    ("PongDeterministic", "--population 2 --generations 1 --center-episodes 1 --max-episode-steps 2 --workers 0"),
    ("redis-address", ""),
    ("--address", ""),
    ("episodes_per_batch", SMALL + " --min-steps 20 --top-directions none"),
    ("--env=Humanoid", SMALL + " --top-directions none"),
    ("sweep", SMALL.replace("--population 4 ", "").replace("--generations 1", "") + " --trials 1 --steps 200"),
    ("esker train", SMALL),
    ("esker eval", "--episodes 1 --workers 0"),
    ("esker render", "--max-steps 3"),
    ("half_cheetah_minimal", "1 3"),
    ("own_workers", "--generations 4"),
    ("exchange_rewards", "--generations 1"),
    ("examples/", "--iterations 1 --workers 0"),
]
NO_CLUSTER = ("--redis-address=127.0.0.1:1", "--address 127.0.0.1:1", "--ray_port 1")  # what answers there: nothing
IN_OTHER_TESTS = ("own_workers", "exchange_rewards")  # tests/test_examples.py starts their processes
FILES = {
    "td3": {"env_name": "HalfCheetah-v2", "algorithm": "TD3", "num_actor_worker": 1, "num_critic_worker": 0},
    "cemrl": {"env_name": "HalfCheetah-v2", "algorithm": "CEM-RL", "population_size": 4, "cemrl_rl_population": 2},
    "pcemrl": {"env_name": "HalfCheetah-v2", "algorithm": "P-CEM-RL", "population_size": 4, "cemrl_rl_population": 2},
    "acemrl": {"env_name": "HalfCheetah-v2", "algorithm": "ACEM-RL", "population_size": 4, "aesrl_rl_ratio": 0.5},
    "opo": {"env_name": "HalfCheetah-v2", "algorithm": "(1+1)-ES", "population_size": 0, "aesrl_rl_ratio": 0.5},
    "aesrl": {"algorithm": "AES-RL", "aesrl_rl_ratio": 0.5, "aesrl_mean_update_param": 2000, "max_timestep": 1e6},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the repository's kind of files and the examples, where the commands of the page follow each other."""
    made = tmp_path_factory.mktemp("coming")
    (made / "halfcheetah-v2").mkdir()
    for name, values in FILES.items():
        (made / "halfcheetah-v2" / f"{name}.json").write_text(json.dumps({"hidden": [400, 300], "lr": 1e-3} | values))
    shutil.copytree(ROOT / "examples", made / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return made


def shortened(command: str) -> list[str]:
    flags = next(flags for part, flags in SHORTER if part in command)
    return [*shlex.split(command), *flags.split()]


def test_there_is_a_command_for_every_system() -> None:
    assert len(COMMANDS) > 25
    assert set(re.findall(r"^## (.*)$", PAGE.read_text(), re.M)) == {
        *("RLlib's ES", "es-torch and evochi", "pytorch-es", "AES-RL"),
        *("Evolutionary Strategies in PyTorch (EvolutionModule)", "EvoTorch", "evosax"),
    }


@pytest.mark.parametrize("command", [c for c in COMMANDS if not any(name in c for name in IN_OTHER_TESTS)])
def test_the_command_does_what_the_page_says(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    program, *arguments = shortened(command)
    if program == "python":
        monkeypatch.setattr(sys, "argv", arguments)
        monkeypatch.syspath_prepend(str(folder / "examples"))
        runpy.run_path(arguments[0], run_name="__main__")
        return
    if "PongDeterministic" in command:
        pytest.importorskip("ale_py")
    status = main(arguments)
    said = capsys.readouterr()
    if any(nobody in command for nobody in NO_CLUSTER):
        assert (status, "no Ray cluster answers at 127.0.0.1:1" in said.err) == (2, True)
        return
    assert status == 0, said.err
    if "--config" in command and "json" in command:
        assert "AES-RL's " in said.out
    if "baseline-absolute" in command:
        assert "mean_update_param = -2000, as published for baseline-absolute" in " ".join(said.out.split())


def test_flags_of_pytorch_es_are_translated_or_name_the_command() -> None:
    flags = {"env_name": "CartPole-v1", "small_net": True, "n": 8, "max_gradient_updates": 3, "variable_ep_len": True}
    config = configure(None, {}, foreign=flags).config
    assert (config.env, config.population, config.generations) == ("CartPole-v1", 8, 3)
    assert (config.hidden, config.activation, config.adaptive_cap) == ((64, 64), "selu", "twice-mean")
    with pytest.raises(UsageError, match="test is a command here: esker render RUN --watch"):
        configure(None, {}, foreign={"env_name": "CartPole-v1", "test": True})
