"""Logging back-ends: what they write, that they continue after a resume, and that none of them can stop training."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from wandb_records import history, run_record

import esker
from esker.cli import main
from esker.logs import wandb as wandb_log
from esker.logs.metrics import metrics
from esker.logs.tensorboard import last_step

SMALL: dict[str, Any] = {
    "preset": None,
    "quiet": True,
    "population": 6,
    "hidden": "8",
    "workers": 0,
    "table_size": 10_000,
    "center_episodes": 1,
}
NAMES_OF_THE_FIELD = {
    "charts/episodic_return",
    "charts/SPS",
    "rollout/ep_rew_mean",
    "rollout/ep_len_mean",
    "eval/mean_reward",
    "time/total_timesteps",
    "es/center_return",
    "es/center_rank",
    "es/sigma",
    "es/gradient_norm",
    "es/update_ratio",
    "es/population_std",
    "es/weight_entropy",
}
SECRET = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _fresh_wandb() -> Iterator[None]:
    """W&B reads its environment variables once a process: let each test's own count."""
    import wandb

    wandb.teardown()
    yield
    wandb.teardown()


def train(path: Path, generations: int, **options: Any) -> esker.Run:
    return esker.train("CartPole-v1", run_dir=str(path), generations=generations, **(SMALL | options))


def events(folder: Path) -> dict[str, Any]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    loaded = EventAccumulator(str(folder), size_guidance={"histograms": 0, "scalars": 0})
    loaded.Reload()
    scalars = {tag: [(e.step, e.value) for e in loaded.Scalars(tag)] for tag in loaded.Tags()["scalars"]}
    return {"scalars": scalars, "histograms": {t: loaded.Histograms(t) for t in loaded.Tags()["histograms"]}}


def offline_logs(run: Path) -> list[Path]:
    """The offline logs of a run, in the order they were begun (W&B's folder names hold the second)."""
    import wandb

    wandb.teardown()  # its service has written everything when it has gone
    found = run.glob("wandb/offline-run-*/run-*.wandb")
    return sorted(found, key=lambda path: next(iter(history(path)), {"_step": 0})["_step"])


def test_metrics_have_the_names_of_the_field(tmp_path: Path) -> None:
    row = train(tmp_path / "run", 1).history[0]
    named = metrics(row, "es")
    assert set(named) >= NAMES_OF_THE_FIELD
    assert named["charts/episodic_return"] == named["rollout/ep_rew_mean"] == row["return_mean"]
    assert named["eval/mean_reward"] == named["es/center_return"] == row["center_return"]
    assert named["time/total_timesteps"] == row["env_steps"]
    assert metrics({"critic_loss": 2.0, "note": "text", "missing": None}, "td3") == {"td3/critic_loss": 2.0}


def test_csv_holds_the_journal_and_is_completed_after_a_crash(tmp_path: Path) -> None:
    run = train(tmp_path / "run", 2, log="csv")
    file = run.path / "metrics.csv"
    file.write_text(file.read_text()[:-20])  # a crash in the middle of a line
    run = esker.resume(run.path, generations=4)
    rows = list(csv.DictReader(file.open()))
    assert [int(row["generation"]) for row in rows] == [0, 1, 2, 3]
    for row, line in zip(run.history, rows, strict=True):
        assert float(line["return_mean"]) == row["return_mean"]
        assert line["episode_cap"] == ""


def test_tensorboard_curves_are_over_environment_steps_without_gap_or_repetition(tmp_path: Path) -> None:
    run = train(tmp_path / "run", 2, log="tensorboard")
    run = esker.resume(run.path, generations=4)
    seen = events(run.path / "tensorboard")
    steps = [row["env_steps"] for row in run.history]
    assert set(seen["scalars"]) >= NAMES_OF_THE_FIELD
    assert [step for step, _ in seen["scalars"]["es/center_return"]] == steps
    values = [value for _, value in seen["scalars"]["rollout/ep_rew_mean"]]
    assert values == pytest.approx([row["return_mean"] for row in run.history])
    assert [int(h.histogram_value.num) for h in seen["histograms"]["es/fitness"]] == [6, 6, 6, 6]
    assert last_step(run.path / "tensorboard") == steps[-1]


def test_a_back_end_added_on_resume_gets_the_whole_curve(tmp_path: Path) -> None:
    run = train(tmp_path / "run", 3)
    run = esker.resume(run.path, generations=4, log="tensorboard")
    shown = events(run.path / "tensorboard")["scalars"]["time/iterations"]
    assert [value for _, value in shown] == [0, 1, 2, 3]


def test_wandb_offline_run_continues_in_a_moved_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    options = {"wandb_project": "hills", "wandb_name": "first", "wandb_tags": ["a,b"], "wandb_group": "g"}
    train(tmp_path / "run", 2, log="wandb", wandb_entity="team", **options)
    time.sleep(1.0)  # W&B names its folders by the second
    shutil.move(tmp_path / "run", tmp_path / "elsewhere")
    run = esker.resume(tmp_path / "elsewhere", generations=4)
    first, second = offline_logs(run.path)
    began, continued = run_record(first), run_record(second)
    assert began.run_id == continued.run_id == json.loads((run.path / "wandb.json").read_text())["id"]
    assert (began.project, began.display_name, began.run_group, began.entity) == ("hills", "first", "g", "team")
    assert (list(began.tags), continued.display_name) == (["a", "b"], "first")
    config = {item.key: json.loads(item.value_json) for item in began.config.update}
    assert (config["population"], config["sigma"], config["env"]) == (6, 0.02, "CartPole-v1")
    rows = history(first) + history(second)
    assert [row["_step"] for row in rows] == [row["env_steps"] for row in run.history]
    assert [row["es/center_return"] for row in rows] == [row["center_return"] for row in run.history]
    assert all(sum(row["es/fitness.values"]) == 6 for row in rows)
    assert set(rows[0]) >= NAMES_OF_THE_FIELD
    for file in run.path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes(), file


def test_wandb_keeps_its_name_and_id_when_neither_was_chosen(tmp_path: Path) -> None:
    train(tmp_path / "hill", 1, log="wandb", wandb_mode="offline")
    time.sleep(1.0)
    shutil.move(tmp_path / "hill", tmp_path / "moved")
    esker.resume(tmp_path / "moved", generations=2)
    names = {(run_record(log).run_id, run_record(log).display_name) for log in offline_logs(tmp_path / "moved")}
    assert len(names) == 1
    assert names.pop()[1] == "hill"


def test_wandb_keeps_the_id_it_was_given(tmp_path: Path) -> None:
    run = train(tmp_path / "run", 1, log="wandb", wandb_mode="offline", wandb_id="chosen01")
    assert [run_record(log).run_id for log in offline_logs(run.path)] == ["chosen01"]


def test_videos_and_pages_are_attached_to_the_same_wandb_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train(tmp_path / "run", 1, log="wandb", wandb_mode="offline")
    (run.path / "report.html").write_text("<p>a report</p>")
    video = tmp_path / "best.mp4"
    video.write_bytes(b"not decoded here")
    time.sleep(1.0)
    notes = tmp_path / "notes.txt"
    notes.write_text("kept as it is")
    assert main(["upload", str(run.path), str(run.path / "report.html"), str(video), str(notes)]) == 0
    first, second = offline_logs(run.path)
    assert run_record(first).run_id == run_record(second).run_id
    (media,) = history(second)
    assert media["videos/best._type"] == "video-file"
    assert media["reports/report._type"] == "html-file"
    assert media["_step"] > run.history[-1]["env_steps"]
    copies = [path for path in second.parent.rglob("*") if path.suffix in (".mp4", ".html")]
    assert sorted(path.suffix for path in copies) == [".html", ".mp4"]
    kept = second.parent / "files" / "notes.txt"
    assert kept.read_text() == "kept as it is"
    assert not kept.is_symlink()
    assert "3 files attached" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ([], "holds no videos and no report to attach; name files"),
        (["nowhere.mp4"], "'nowhere.mp4' is not a file"),
    ],
)
def test_nothing_to_attach_is_refused(
    file: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path / "run", 1)
    assert main(["upload", str(run.path), *file]) == 2
    assert message in capsys.readouterr().err


def test_wandb_without_login_says_how_and_training_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "WANDB_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with pytest.warns(RuntimeWarning, match="not logged in; run `wandb login`") as caught:
        run = train(tmp_path / "run", 3, log="wandb,csv")
    assert len([w for w in caught if "stopped" in str(w.message)]) == 1
    assert len(run.history) == 3
    assert len((run.path / "metrics.csv").read_text().splitlines()) == 4


def test_wandb_without_network_logs_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(wandb_log, "CONNECT_SECONDS", 1.0)
    run = train(tmp_path / "run", 2, log="wandb")
    (log,) = offline_logs(run.path)
    assert [row["_step"] for row in history(log)] == [row["env_steps"] for row in run.history]


@pytest.mark.parametrize("package", ["wandb", "tensorboard"])
def test_a_package_that_is_missing_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = {"wandb": "wandb", "tensorboard": "torch.utils.tensorboard"}[package]
    monkeypatch.setitem(__import__("sys").modules, hidden, None)
    with pytest.warns(RuntimeWarning, match=rf"pip install 'esker\[{package}\]'"):
        run = train(tmp_path / "run", 1, log=package)
    assert len(run.history) == 1


def test_a_back_end_that_breaks_under_way_warns_once_and_changes_nothing(tmp_path: Path) -> None:
    plain = train(tmp_path / "plain", 4)
    (train(tmp_path / "run", 1, log="csv").path / "metrics.csv").unlink()
    (tmp_path / "run" / "metrics.csv").mkdir()  # what a full or broken disk does to open()
    with pytest.warns(
        RuntimeWarning, match="logging to csv stopped, training continues without it: IsADirectoryError"
    ) as seen:
        broken = esker.resume(tmp_path / "run", generations=4)
    assert len(seen) == 1
    assert np.array_equal(plain.policy("latest").parameters, broken.policy("latest").parameters)


def test_a_log_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(esker.UsageError, match="log is 'tensorbord'; expected a list of tensorboard, wandb, csv"):
        train(tmp_path / "run", 1, log="tensorbord")


def test_wandb_options_without_wandb_are_refused(tmp_path: Path) -> None:
    with pytest.raises(esker.UsageError, match="wandb_group is given without W&B; add --log wandb"):
        train(tmp_path / "run", 1, wandb_group="g")
