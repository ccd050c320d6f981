"""The page about extending: every file on it works, by the commands on it, and is short."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import esker
from esker.cli import main

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()
FILES = dict(re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE, re.S))
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", PAGE, re.S) for line in block.splitlines()]
SHORT = ["--generations", "2", "--workers", "0", "--noise", "counter", "--run-dir", "run"]
SMALL: dict[str, Any] = {"preset": None, "workers": 0, "noise": "counter", "population": 6, "hidden": "8"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_every_file_has_fewer_than_50_lines() -> None:
    assert len(FILES) == 7
    assert all(len(text.splitlines()) < 50 for text in FILES.values())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_work(command: str, folder: Path) -> None:
    arguments = shlex.split(command)[1:]
    assert main(arguments + (SHORT if arguments[0] == "train" else [])) == 0
    if arguments[0] == "train":
        assert len(esker.Run(folder / "run").history) == 2


def test_an_algorithm_by_path_resumes_to_the_same_bits() -> None:
    small = {"workers": 0, "noise": "counter", "population": 6, "hidden": "8", "halve_every": 2, "quiet": True}
    whole = esker.train("CartPole-v1", algo="halving:HALVING", run_dir="whole", generations=5, **small)
    esker.train("CartPole-v1", algo="halving:HALVING", run_dir="half", generations=3, **small)
    again = esker.resume("half", generations=5)
    assert (again.policy("latest").parameters == whole.policy("latest").parameters).all()
    assert [row["sigma"] for row in again.history] == [0.1, 0.1, 0.05, 0.05, 0.025]


def test_a_logger_by_path_has_no_gap_after_a_resume(folder: Path) -> None:
    esker.train("CartPole-v1", run_dir="a", generations=2, log="lines:Lines", quiet=True, **SMALL)
    esker.resume("a", generations=4)
    assert [line.split()[0] for line in (folder / "a" / "lines.txt").read_text().splitlines()] == ["0", "1", "2", "3"]


def test_a_logger_that_cannot_be_made_is_dropped(folder: Path) -> None:
    (folder / "broken.py").write_text(
        "from lines import Lines\nclass Broken(Lines):\n    def __init__(self): raise OSError('no')\n"
    )
    with pytest.warns(RuntimeWarning, match="logging to broken:Broken stopped, training continues without it: OSError: no"):
        run = esker.train("CartPole-v1", generations=1, log="broken:Broken", quiet=True, **SMALL)
    assert len(run.history) == 1


@pytest.mark.parametrize("error", ["SystemExit", "NoText"])
def test_a_logger_that_ends_the_process_or_raises_without_text_is_dropped(folder: Path, error: str) -> None:
    text = "class NoText(Exception):\n    def __str__(self):\n        raise LookupError\n\n\n"
    methods = [f"    def {name}(self, *given):\n        raise {error}\n" for name in ("begin", "generation", "end")]
    (folder / f"fatal_{error.lower()}.py").write_text(text + "class Fatal:\n" + "\n".join(methods))
    with pytest.warns(RuntimeWarning, match=f"stopped, training continues without it: {error}"):
        run = esker.train("CartPole-v1", generations=1, log=f"fatal_{error.lower()}:Fatal", quiet=True, **SMALL)
    assert run.status == "finished: 1 generation done"


def test_an_observer_is_shown_a_run_beside_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    class Listener:
        rows: list[Any] = []  # noqa: RUF012

        def begin(self, config: Any, folder: Any, rows: Any) -> None: ...
        def generation(self, row: Any, returns: Any = None) -> None:
            self.rows.append((row["generation"], len(returns)))

        def note(self, text: str) -> None: ...
        def end(self, reason: str) -> None: ...

    esker.train("CartPole-v1", generations=2, observer=Listener(), **SMALL)
    assert Listener.rows == [(0, 6), (1, 6)]
    assert "generation" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--log", "lines:Missing", "logger 'lines:Missing': 'lines' has no 'Missing'"),
        ("--log", "math:pi", "logger 'math:pi' does not fit: it has no begin, generation, end"),
        ("--log", "cvs", "log is 'cvs'; expected a list of tensorboard, wandb, csv, or module:name"),
        ("--shaping", "no_such:f", "shaping 'no_such:f': cannot import 'no_such'"),
        ("--shaping", "rank", "shaping is 'rank'; expected one of centered_rank"),
        ("--activation", "mish:mich", "activation 'mish:mich': 'mish' has no callable 'mich'; did you mean 'mish'?"),
        ("--activation", "numpy:sum", "activation 'numpy:sum' changes shape (2, 3) to (); expected the same shape"),
        ("--activation", "gelu", "activation is 'gelu'; expected one of tanh"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(
    option: str, value: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "CartPole-v1", "--preset", "none", option, value, *SHORT]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (folder / "run").exists()


def test_a_shaping_with_too_few_weights_stops_the_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "short.py").write_text("def short(fitness):\n    return fitness[:3]\n")
    assert main(["train", "CartPole-v1", "--preset", "none", "--shaping", "short:short", *SHORT]) == 1
    assert "returned an array of shape (3,); expected 40 finite weights" in capsys.readouterr().err
