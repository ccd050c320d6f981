"""The pages as a reader follows them: every block runs, in order, in an empty folder; training is shortened by flags."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from page_blocks import ROOT, Block, blocks, commands
from small_runs import small_run

from esker.cli import main

ELSEWHERE = {"coming-from.md", "evolution.md", "extending.md", "three-ideas.md"}  # run by tests of their own
PAGES = sorted({block.page for block in (*blocks("bash"), *blocks("python")) if block.needs is None} - ELSEWHERE)
SMALL = "--population 4 --generations 1 --center-episodes 1 --max-episode-steps 5 --noise counter --workers 0"
HYBRID = (
    "--hidden 8 --initial-steps 20 --batch-size 8 --center-episodes 1 --max-episode-steps 10 --generations 1 --workers 0"
)
# By what a command contains, the first that fits: the flags that shorten it.
SHORTER = [
    ("aes-rl", HYBRID + " --results-per-generation 1 --deterministic"),
    ("aesrl", HYBRID + " --results-per-generation 1 --deterministic"),
    ("--algo td3", HYBRID + " --generation-steps 20"),
    ("--top-directions", SMALL + " --top-directions 2"),
    ("--seeds", SMALL + " --seeds 0..1"),
    ("--config RUN/config.toml", "--workers 0"),
    ("esker train", SMALL),
    ("esker resume", "--workers 0 --generations 5"),
    ("esker sweep", SMALL.replace("--population 4 --generations 1", "--generations 3") + " --trials 2"),
    ("esker eval", "--episodes 1 --workers 0"),
    ("esker render", "--max-steps 3"),
    ("esker export latest", "--format state-dict"),
    ("esker card", "--episodes 1"),
    ("examples/own_workers.py", "--generations 4"),
    ("examples/language", "--help"),
]
WORLD = "import gymnasium as gym\n\n\ndef make_env():\n    return gym.make('CartPole-v1')\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A reader's folder: RUN and some runs, a package, a file of the AES-RL repository, a space for a sweep."""
    environments = (f"runs/{name}/s0" for name in ("CartPole-v1", "HalfCheetah-v5", "Humanoid-v5"))
    for name in ("RUN", "runs/a", "runs/b", "runs/c", "sweeps/a", *environments):
        shutil.copytree(small_run(seed=1 if name.endswith("b") else 0), tmp_path / name)
    (tmp_path / "my_package.py").write_text(WORLD)
    (tmp_path / "space.toml").write_text('lr = "0.001..0.1:log"\n')
    for name in ("notes.pdf", "curve.png"):
        (tmp_path / name).write_bytes(b"anything")
    (tmp_path / "halfcheetah-v2").mkdir()
    aes = {"algorithm": "AES-RL", "aesrl_rl_ratio": 0.5, "aesrl_mean_update_param": 2000}
    (tmp_path / "halfcheetah-v2" / "aesrl.json").write_text(json.dumps(aes))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_a_page_works_from_its_first_block_to_its_last(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "__main__"}  # one page, one session
    for block in blocks(None, page):
        if block.needs is not None:
            continue
        if block.language == "python":
            run_python(block, names)
            continue
        for command in commands(block):
            status = run_command(command)
            assert status == 0, f"{command}: {capsys.readouterr().err}"
    for module in {path.stem for path in folder.glob("*.py")}:
        sys.modules.pop(module, None)


def run_python(block: Block, names: dict[str, object]) -> None:
    """Execute a block; one that begins with the name of a file is also that file."""
    if named := re.match(r"# (\w+\.py)\n", block.text):
        Path(named[1]).write_text(block.text)
    exec(compile(block.text, block.page, "exec"), names)


def run_command(command: str) -> int:
    """Run one command of a page: esker's and Python's in this process, pip's not at all, others by a shell."""
    program, *arguments = shlex.split(command)
    arguments += next((flags for part, flags in SHORTER if part in command), "").split()
    if program == "esker":
        return main(arguments)
    if program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.findall(r"(?:esker|\.)\[([\w,]+)\]", command)
        return int(any(extra not in extras for names in named for extra in names.split(",")))
    if program == "python":
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, timeout=60).returncode
    return subprocess.run(["bash", "-ec", command], capture_output=True, timeout=60).returncode


def test_a_block_that_is_not_run_states_what_it_needs() -> None:
    marked = [block for block in (*blocks("bash"), *blocks("python")) if block.needs is not None]
    assert len(marked) > 8
    assert all(block.needs and block.needs.endswith(".") for block in marked)
