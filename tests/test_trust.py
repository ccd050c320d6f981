"""A run folder from elsewhere runs none of its code unless its modules are named."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from small_runs import QUICK, small_run

import esker
from esker.cli import main
from esker.errors import UsageError
from esker.runs.seals import seal_json, seal_toml
from esker.runs.trust import check_trust, code_named, records_file

Cli = Callable[..., subprocess.CompletedProcess[str]]
EVIL = """
from pathlib import Path
Path({mark!r}).write_text("executed")
import torch
class Net(torch.nn.Module):
    pass
def make(**kwargs):
    import gymnasium
    return gymnasium.make("CartPole-v1")
def wrap(env):
    return env
"""


def stranger(target: Path, *, forget: bool = True, **options: Any) -> Path:
    """A run folder as another user would hand it over, with these options in its config.toml."""
    shutil.copytree(small_run(), target)
    for config in [target / "config.toml", *target.glob("checkpoints/*/config.toml")]:
        config.write_text(seal_toml(tomli_w.dumps(tomllib.loads(config.read_text()) | options)))
    for file in [target / "about.json", *target.glob("checkpoints/*/about.json")]:
        about = json.loads(file.read_text())
        if forget:
            about["run"] = "0" * 32
        about.pop("checksum")
        file.write_text(seal_json(about))
    for file in target.glob("checkpoints/*/state.json"):
        values = json.loads(file.read_text()) | {"run": "0" * 32}
        values.pop("checksum")
        file.write_text(seal_json(values))
    (target / "facts").unlink()
    return target


READERS = (["eval", "{}"], ["resume", "{}"], ["card", "{}"], ["render", "{}"], ["eval", "{}/checkpoints/000000"])


@pytest.mark.parametrize("command", READERS, ids=" ".join)
def test_an_environment_that_is_a_command_is_not_run(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "mark"
    run = stranger(tmp_path / "run", env="os:system", env_kwargs={"command": f"touch {mark}"})
    assert main([part.format(run) for part in command]) == 2
    said = capsys.readouterr().err
    assert not mark.exists()
    assert said.count("\n") == 1
    assert "'os:system'" in said
    assert "--trust os" in said


@pytest.mark.parametrize("option", ["env", "wrapper", "network"])
def test_modules_beside_a_run_are_not_imported(option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    values: dict[str, Any] = {"env": "evil:make", "wrapper": ["evil:wrap"], "network": "evil:Net"}
    run = stranger(tmp_path / "run", **{option: values[option]})
    (run / "evil.py").write_text(EVIL.format(mark=str(mark)))
    monkeypatch.chdir(run)
    monkeypatch.syspath_prepend(str(run))  # even where it could be found
    for command in (["eval", "."], ["render", "."], ["resume", "."]):
        assert main(command) == 2, command
    with pytest.raises(UsageError, match="evil"):
        esker.evaluate(".")
    if option == "network":
        assert main(["export", "."]) == 2
        with pytest.raises(UsageError, match="--trust evil"):
            esker.load(".")
        with pytest.raises(UsageError, match="--trust evil"):
            esker.train("CartPole-v1", init_from=".", run_dir=str(tmp_path / "new"), **QUICK, generations=1)
    assert not mark.exists()
    assert "evil" not in sys.modules


def test_an_algorithm_by_path_is_not_imported_by_commands_that_read_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stranger(tmp_path / "run", algo="evil:Algorithm")
    (run / "evil.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    monkeypatch.syspath_prepend(str(run))
    for command in (["eval"], ["report"], ["plot", "-o", str(tmp_path / "x.png")], ["export"], ["resume"], ["upload"]):
        assert main([command[0], str(run), *command[1:]]) == 2, command
    assert main(["runs", str(tmp_path)]) == 0
    with pytest.raises(UsageError, match="evil:Algorithm"):
        _ = esker.Run(run).config
    assert not (tmp_path / "mark").exists()


def test_loading_a_policy_does_not_need_trust_in_its_environment(tmp_path: Path) -> None:
    run = stranger(tmp_path / "run", env="nowhere:make")
    assert esker.load(run).act([0.0, 0.0, 0.0, 0.0]) in (0, 1)


def test_modules_in_the_working_folder_do_not_shadow_libraries(tmp_path: Path, cli: Cli) -> None:
    run = stranger(tmp_path / "run")
    for name in ("torch", "gymnasium", "struct", "pickle", "esker_presets"):
        (run / f"{name}.py").write_text(f"from pathlib import Path\nPath({str(tmp_path / 'mark')!r}).touch()\n")
    environment = os.environ | {"PYTHONPATH": str(Path(esker.__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "esker", "eval", ".", "--episodes", "2", "--workers", "1", "--json"],
        cwd=run,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, (tmp_path / "mark").exists()) == (0, False), done.stderr
    assert json.loads(done.stdout)["episodes"] == 2


def test_a_trusted_module_is_imported(tmp_path: Path, cli: Cli) -> None:
    run = stranger(tmp_path / "run", env="some_worlds:make")
    (tmp_path / "some_worlds.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    refused = cli("eval", run, "--episodes", 1, "--workers", 0, "--trust", "other_worlds")
    assert (refused.returncode, (tmp_path / "mark").exists()) == (2, False)
    done = cli("eval", run, "--episodes", 1, "--workers", 0, "--trust", "some_worlds")
    assert (done.returncode, (tmp_path / "mark").exists()) == (0, True), done.stderr


@pytest.mark.parametrize("trust", [True, ["worlds"], ["worlds:Corridor"], "worlds"])
def test_python_callers_say_what_they_trust(trust: Any, tmp_path: Path) -> None:
    run = esker.train("worlds:Corridor", run_dir=str(tmp_path / "a"), **QUICK, generations=1)
    moved = tmp_path / "b"
    shutil.copytree(run.path, moved)
    about = json.loads((moved / "about.json").read_text())
    (moved / "about.json").write_text(json.dumps({**about, "run": "1" * 32}))
    with pytest.raises(UsageError, match="not made on this machine"):
        esker.evaluate(moved, episodes=1, workers=0)
    assert esker.evaluate(moved, episodes=1, workers=0, trust=trust)[0].returns == [16.0]


def test_a_run_made_here_is_trusted_wherever_it_is(tmp_path: Path, cli: Cli) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "my_worlds.py").write_text(EVIL.format(mark=str(tmp_path / "mark")))
    options = [
        "--generations",
        "1",
        "--population",
        "2",
        "--workers",
        "0",
        "--quiet",
        "--preset",
        "none",
        "--noise",
        "counter",
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(esker.__file__).parent.parent)}
    command = [sys.executable, "-m", "esker", "train", "my_worlds:make", *options, "--run-dir", "run"]
    subprocess.run(command, cwd=project, env=environment, check=True, timeout=120)
    shutil.move(project / "run", tmp_path / "elsewhere")
    done = cli("eval", tmp_path / "elsewhere" / "checkpoints" / "000001", "--episodes", 1, "--workers", 0, "--json")
    assert done.returncode == 0, done.stderr


def test_an_identity_seen_in_public_buys_no_other_code(tmp_path: Path) -> None:
    known = json.loads((small_run() / "about.json").read_text())["run"]
    run = stranger(tmp_path / "run", forget=False, env="os:system", env_kwargs={"command": "true"})
    assert json.loads((run / "about.json").read_text())["run"] == known
    with pytest.raises(UsageError, match="os:system"):
        esker.evaluate(run)


def test_arguments_of_trusted_code_are_part_of_the_record(tmp_path: Path) -> None:
    made = esker.train("worlds:Corridor", run_dir=str(tmp_path / "a"), **QUICK, generations=1)
    file = made.path / "config.toml"
    file.write_text(tomli_w.dumps(tomllib.loads(file.read_text()) | {"env_kwargs": {"log": str(tmp_path / "log")}}))
    with pytest.raises(UsageError, match="worlds:Corridor"):
        esker.evaluate(made.path)


def test_a_cluster_named_by_a_stranger_is_not_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = stranger(tmp_path / "run", engine="ray", address="203.0.113.1:6379")
    assert main(["resume", str(run)]) == 2
    assert "add --address 203.0.113.1:6379" in capsys.readouterr().err


def test_the_record_is_private_and_outside_of_the_folder(tmp_path: Path) -> None:
    small_run()
    record = records_file(json.loads((small_run() / "about.json").read_text())["run"])
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    assert not record.is_relative_to(small_run())


def test_a_record_that_others_can_write_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    made = esker.train("worlds:Corridor", run_dir=str(tmp_path / "a"), **QUICK, generations=1)
    assert len(esker.evaluate(made.path, episodes=1, workers=0)[0].returns) == 1
    records_file(json.loads((made.path / "about.json").read_text())["run"]).chmod(0o666)
    with pytest.raises(UsageError, match="not made on this machine"):
        esker.evaluate(made.path, episodes=1, workers=0)


def test_every_text_with_a_colon_counts_as_code_unless_known_not_to() -> None:
    values = {"algo": "mine:Algo", "log": ["csv", "my:Logger"], "device": "cuda:0", "wandb_name": "a:b", "lr": 0.1}
    assert code_named(values) == {"algo": ["mine:Algo"], "log": ["my:Logger"]}
    assert code_named({"env": "GymV26Environment-v0"}) == {"env": ["GymV26Environment-v0"]}


def test_registered_ids_need_no_trust(tmp_path: Path) -> None:
    check_trust(tmp_path, {"env": "ALE/Pong-v5", "network": "nature-cnn", "address": "auto"}, {}, False)


def test_records_of_a_former_version_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    entries = [{"run": digit * 32, "digest": "d", "path": []} for digit in "ab"]
    (tmp_path / "esker").mkdir()
    (tmp_path / "esker" / "runs").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (tmp_path / "esker" / "runs").chmod(0o600)
    assert json.loads(records_file("b" * 32).read_text()) == entries[1]
    assert stat.S_IMODE(records_file("a" * 32).stat().st_mode) == 0o600


def test_a_reward_that_looks_like_an_object_of_a_process_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, mark = tmp_path / "run", tmp_path / "mark"
    esker.Evolution(torch.zeros(2), lambda w: 0.0, workers=0, population=2, quiet=True, run_dir=folder).run(1)
    for config in [folder / "config.toml", *folder.glob("checkpoints/*/config.toml")]:
        config.write_text(seal_toml(tomli_w.dumps(tomllib.loads(config.read_text()) | {"env": "evil:<f>"})))
    (tmp_path / "evil.py").write_text(EVIL.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert main(["resume", str(folder), "--generations", "3"]) == 2
    assert "'evil:<f>' names an object that only its own process has" in capsys.readouterr().err
    assert not mark.exists()
