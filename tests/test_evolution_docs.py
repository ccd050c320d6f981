"""The page about Evolution: every snippet runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from page_blocks import blocks

PAGE = Path(__file__).parent.parent / "docs" / "evolution.md"
SNIPPETS = [block.text for block in blocks("python", PAGE.name) if block.needs is None]


@pytest.mark.parametrize("number", range(len(SNIPPETS)))
def test_snippets_of_the_page_run(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(SNIPPETS[number], f"{PAGE.name}, snippet {number}", "exec"), names)
    if "accuracy" in names:
        assert names["evolution"].best_reward > 0.8  # type: ignore[attr-defined]
    if "again" in names:
        assert names["again"].iteration == 40  # type: ignore[attr-defined]


def test_the_table_of_options_names_only_options_that_exist() -> None:
    from dataclasses import fields

    from esker.config.evolution import EvolutionConfig

    rows = PAGE.read_text().split("## Options")[1].split("## ")[0].splitlines()
    named = {name for row in rows if row.startswith("| `") for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert len(named) > 15
    assert named <= {f.name for f in fields(EvolutionConfig)}
