"""The live display: whole labels at any width, a curve with its scale, and a bar that ends at the end."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from small_runs import QUICK, small_run

import esker
from esker.engines.engine import Pulse
from esker.logs.console import Display, Plain
from esker.logs.text import sparkline
from esker.runs.folder import RunFolder
from esker.system.words import count


def row(generation: int = 0, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "generation": generation,
        "env_steps": 1_234_567,
        "steps_per_second": 45_678.0,
        "center_return": 10.0 * generation,
        "best_return": 123.4,
        "return_mean": -1234.5,
        "return_std": 123.4,
        "return_max": 200.0,
        "return_min": 1.0,
        "center_rank": 7,
        "members": 40,
        "episode_length_mean": 999.9,
        "wall_time": 30.0,
        "sigma": 0.02,
        "gradient_norm": 12.3,
    }
    return values | changes


def shown(width: int, rows: list[dict[str, Any]], end: str | None = None, pulse: Pulse | None = None) -> str:
    """The last picture of a display of that width."""
    output = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    display = Display(output)
    display.begin(esker.Run(small_run()).config, RunFolder(small_run()), [])
    for one in rows:
        display.generation(one)
    display.pulse(lambda: pulse)
    if end is not None:
        display.end(end)
    display.live.stop()
    plain = Console(width=width, file=io.StringIO(), force_terminal=True, color_system=None)
    plain.print(display.picture())
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", plain.file.getvalue())  # type: ignore[attr-defined]


LABELS = (
    "generation",
    "steps",
    "centre return",
    "best running mean",
    "return mean",
    "centre rank",
    "episode length",
    "gradient norm",
)


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_labels_and_values_are_whole_at_any_width(width: int) -> None:
    text = shown(width, [row(g) for g in range(3)])
    assert all(label in text for label in LABELS)
    assert all(value in text for value in ("1,234,567 (45,678/s)", "-1,234.5 ± 123.4", "7 of 41", "999.9"))
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_wide_terminal_is_used() -> None:
    rows = [row(g) for g in range(200)]
    assert len(shown(160, rows).splitlines()) < len(shown(60, rows).splitlines())
    assert max(len(line.rstrip()) for line in shown(160, rows).splitlines()) > 140


def test_curve_has_a_scale() -> None:
    assert "▁ 0.0  █ 20.0, generations 0 to 2" in shown(80, [row(g) for g in range(3)])
    assert sparkline([0.0, None, 7.0], 10) == "▁█"


@pytest.mark.parametrize(
    "end", ["finished: goal reached: centre return ≥ 475, 3 times in a row", "finished: 1 generation done"]
)
def test_finished_run_is_at_its_end(end: str) -> None:
    text = shown(80, [row(0)], end)
    assert ("100%" in text, "took 30s" in text, "eta" in text) == (True, True, False)


def test_interrupted_run_is_not_at_its_end() -> None:
    assert "25%" in shown(80, [row(0)], "interrupted")  # of four generations


def test_steps_within_a_generation_are_shown() -> None:
    assert "generation 3 under way: 5 of 40 episodes, 1,200 steps" in shown(80, [row(2)], pulse=Pulse(1200, 5, 40))
    assert "generation 0 under way: 0 of 40 episodes, 77 steps" in shown(80, [], pulse=Pulse(77, 0, 40))
    assert "starting workers" in shown(80, [])


def test_note_of_a_row_is_shown_in_plain_lines_and_above_the_display() -> None:
    for kind in (Plain, Display):
        output = Console(width=200, file=io.StringIO(), force_terminal=kind is Display, color_system=None)
        observer = kind(output)
        observer.begin(esker.Run(small_run()).config, RunFolder(small_run()), [])
        for generation in range(3):
            observer.generation(row(generation, **({"note": "all alike"} if generation == 1 else {})))
        observer.end("interrupted")
        assert output.file.getvalue().count("note: all alike") == 1  # type: ignore[attr-defined]


def test_stall_is_in_the_journal_and_on_the_console_once_also_after_a_resume(tmp_path: Path) -> None:
    output = Console(width=200, file=io.StringIO(), color_system=None)
    options = QUICK | {"generations": 22, "sigma": 1e-9, "quiet": False}
    path = tmp_path / "run"
    run = esker.train("MountainCar-v0", observer=Plain(output), run_dir=str(path), **options)
    esker.resume(path, observer=Plain(output), generations=25)
    notes = {one["generation"]: one["note"] for one in run.history if "note" in one}
    assert list(notes) == [19]
    assert notes[19].startswith("all members have had the same score (-200.0) for 20 generations")
    assert output.file.getvalue().count(notes[19]) == 1  # type: ignore[attr-defined]


def test_plural_forms() -> None:
    assert (count(1, "run"), count(2, "run"), count(1200, "seed")) == ("1 run", "2 runs", "1,200 seeds")


def test_live_display_of_a_real_run(tmp_path: Path) -> None:
    output = Console(width=90, file=io.StringIO(), force_terminal=True, color_system=None)
    esker.train("CartPole-v1", observer=Display(output), run_dir=str(tmp_path / "run"), **(QUICK | {"generations": 2}))
    text = output.file.getvalue()  # type: ignore[attr-defined]
    assert "100%" in text
    assert text.rstrip().endswith("finished: 2 generations done")
