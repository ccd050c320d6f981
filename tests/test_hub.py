"""Policies by `hf://owner/name`, from a server on the loopback that has the hub's addresses."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from small_runs import small_run

import esker
from esker.cli import main
from esker.runs.loading import open_checkpoint
from esker.tools.card import write_weights


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A hub with somebody's policy under /somebody/cartpole/resolve/main."""
    folder = tmp_path / "hub" / "somebody" / "cartpole" / "resolve" / "main"
    folder.mkdir(parents=True)
    write_weights(open_checkpoint(small_run()), folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "hub")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield folder
    server.shutdown()
    server.server_close()


def test_a_policy_by_name_is_that_of_the_run() -> None:
    np.testing.assert_array_equal(esker.load("hf://somebody/cartpole").parameters, esker.load(small_run()).parameters)


def test_commands_take_a_policy_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "hf://somebody/cartpole", "--episodes", "2", "--workers", "0"]) == 0
    assert "mean" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hf://somebody/other", "has no state.safetensors (404); expected a folder that `esker card` wrote"),
        ("hf://somebody", "expected hf://owner/name"),
        ("hf://../cartpole", "expected hf://owner/name"),
        ("hf://somebody/cartpole@../main", "expected hf://owner/name"),
    ],
)
def test_names_without_a_policy_are_refused_in_one_line(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", name, "--workers", "0"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_code_that_a_fetched_policy_names_is_not_imported(hub: Path, tmp_path: Path) -> None:
    config = hub / "config.toml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith(("#", "network"))]
    config.write_text("\n".join(['network = "stranger:Net"', *lines]) + "\n")
    with pytest.raises(esker.UsageError, match="would import and run 'stranger:Net'"):
        esker.load("hf://somebody/cartpole")


def test_a_hub_out_of_reach_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(esker.RunError, match="the hub cannot be reached"):
        esker.load("hf://somebody/cartpole")
