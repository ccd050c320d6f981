"""`esker completion`: real shells complete commands, flags, choices and names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from esker.cli import main
from esker.commands.every import COMMANDS

DRIVER = """
source "{script}"
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_esker_complete
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import contextlib
    import io

    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert main(["completion", "bash"]) == 0
    path = tmp_path_factory.mktemp("completion") / "esker.bash"
    path.write_text(output.getvalue())
    return path


def completed(script: Path, *words: str) -> list[str]:
    quoted = " ".join(f"'{word}'" for word in words)
    program = DRIVER.format(script=script, words=quoted)
    done = subprocess.run(["bash", "-c", program], cwd=script.parent, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_commands_flags_choices_and_names(script: Path) -> None:
    assert completed(script, "esker", "pre") == ["presets"]
    assert completed(script, "esker", "train", "--popul") == ["--population"]
    assert completed(script, "esker", "train", "--optimizer", "ada") == ["adam", "adamw"]
    assert completed(script, "esker", "train", "--explor") == ["--exploration-noise"]  # of another algorithm
    assert completed(script, "esker", "train", "Half") == ["HalfCheetah-v5"]
    assert completed(script, "esker", "eval", "la") == ["latest"]
    assert completed(script, "esker", "plot", "--x", "t") == ["time", "training"]
    assert completed(script, "esker", "cluster", "st") == ["stop"]


def test_bash_completes_files(script: Path) -> None:
    (script.parent / "my-run").mkdir()
    assert completed(script, "esker", "eval", "my") == ["my-run"]


def test_every_command_is_completed(script: Path) -> None:
    known = {"eval" if name == "evaluate" else name for name in COMMANDS}
    assert set(completed(script, "esker", "")) == known


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "population" in text
    if shell == "fish":
        assert "complete -c esker -n '__fish_seen_subcommand_from train' -l optimizer -x -a 'adam" in text
    if shutil.which(shell):
        (tmp_path / "script").write_text(text)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
