"""`esker bench`: what it replays are the very steps of a generation, and wrong requests get one line."""

from pathlib import Path

import pytest

from esker.bench.rollout import Case, alternate
from esker.cli import main


def test_turns_replay_every_step_of_the_generation_and_measure_both(tmp_path: Path) -> None:
    turns = alternate(Case("CartPole-v1", 0.75, {"population": 4, "center_episodes": 1}), tmp_path, 1, workers=1)
    lengths = [path.stat().st_size for path in tmp_path.glob("*.npy")]
    assert len(lengths) == 5  # members and the centre
    assert turns.steps >= 5 * 8  # nothing falls in less than 8 steps
    assert turns.ratios == [turns.raw[0] / turns.ours[0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "scaling", "--workers", "1,x"], "'1,x'; expected numbers of workers, as 1,2,4"),
        (["--only", "scaling", "--workers", "0"], "'0'; expected numbers of workers, as 1,2,4"),
        (["--only", "update", "--workers", "1"], "--workers is for --only scaling"),
        (["--only", "scalling"], "unknown benchmark 'scalling'"),
    ],
)
def test_a_wrong_request_gets_status_2_and_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["bench", *arguments]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said
