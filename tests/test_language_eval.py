"""`esker eval` for a language model's run: the held-out prompts, by the checkpoint's parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from tiny_language import letters, tiny

from esker.cli import main
from esker.errors import UsageError
from esker.language import LanguageEvolution, load
from esker.language.stored import evaluate_run

PROMPTS, HELD_OUT = ["1+2=", "a", "34=", "b*"], ["9+9=", "b", "(c"]


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, Any]:
    """A run of three generations, and what its own evaluation found."""
    model = tmp_path / "model"
    LanguageEvolution(tiny(), PROMPTS, letters, quiet=True).save(model)
    run = LanguageEvolution(
        load(model), PROMPTS, letters, held_out=HELD_OUT, population=8, sigma=0.1, lr=0.03, max_new_tokens=4, quiet=True,
        right=0.5, template=lambda prompt: f"({prompt}", run_dir=str(tmp_path / "run"),
    )  # fmt: skip
    run.run(3)
    return tmp_path / "run", run.evaluate(HELD_OUT)


def test_eval_finds_what_the_run_found(made: tuple[Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    folder, expected = made
    assert main(["eval", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["episodes"], found["checkpoint"], found["accuracy"]) == (3, 3, expected.accuracy)
    assert found["mean"] == pytest.approx(expected.score)
    assert 0 < found["length_mean"] <= 4
    assert main(["eval", str(folder), "--episodes", "1", "--checkpoint", "latest"]) == 0
    prompt, completion, _ = expected.examples[0]
    assert f"{prompt!r}  {completion!r}" in capsys.readouterr().out


def test_a_generation_that_was_not_stored_is_replayed(made: tuple[Path, Any]) -> None:
    folder, _ = made
    assert not (folder / "checkpoints" / "000002").exists()
    assert evaluate_run(folder, checkpoint=2).evaluation.checkpoint == 2


def test_a_score_from_elsewhere_is_imported_only_if_trusted(
    made: tuple[Path, Any], monkeypatch: Any, tmp_path: Path
) -> None:
    folder, expected = made
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    with pytest.raises(UsageError, match="would import and run 'tiny_language:letters'"):
        evaluate_run(folder)
    assert evaluate_run(folder, trust=["tiny_language"]).found.accuracy == expected.accuracy


def test_what_only_python_has_is_refused(tmp_path: Path) -> None:
    run = LanguageEvolution(
        tiny(), PROMPTS, letters, held_out=HELD_OUT, population=4, quiet=True, run_dir=str(tmp_path / "a")
    )
    run.run(1)
    with pytest.raises(UsageError, match=r"the model of .* is an object that only Python has"):
        evaluate_run(tmp_path / "a")
