"""Command lines, configuration files and inline JSON that make no sense: refused in one line, or done."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_runs import small_run
from watched import EXAMPLES, status_of

from esker.algorithms import registry

QUICK = ["--generations", "1", "--workers", "0", "--quiet", "--noise", "counter", "--population", "2", "--preset", "none"]
QUICK += ["--wall-time", "5"]  # what is asked for may take long, and then it is no hang
TEXTS = ["", "0", "-1", "1", "2", "3.5", "nan", "inf", "-inf", "1e300", "1e308", "1e-320", "²", "٣", "none", "true", "x:y"]
TEXTS += ["\x00", "a\x00b", "\ud800", "9" * 400, "a" * 300, "{}", "[]", '{"a": 1}', "[" * 5000, "../..", ".envs:make"]
TEXTS += ["0x10", "1_000", " 5 ", "[/]", "a\nb", "-", "--", "~", "64,64", ",", "64,-1", "worlds:Corridor", "os:system"]
TEXTS += ["adam", "mlp"]
OPTIONS = sorted({f.name for name in registry.BUILT_IN for f in fields(registry.find(name).config)} - {"env", "algo"})
REMOTE = {"engine", "address", "working_dir", "run_dir", "log", "device", "resources"}  # start servers, or name places
READERS = ("eval", "render", "export", "card", "resume", "report", "plot", "runs", "upload", "check", "presets", "attach")
READER_FLAGS = ["--checkpoint", "--episodes", "--seed", "--workers", "--fps", "--size", "--max-steps", "--format", "-o"]
READER_FLAGS += ["--x", "--y", "--port", "--sort", "--trust", "--json", "--caption", "--env-kwargs", "--wrapper"]

texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=12), st.integers().map(str), st.floats().map(str))
names = st.sampled_from([name for name in OPTIONS if name not in REMOTE])
many = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, print_blob=False
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ESKER_TRACEBACK", "1")


def train(*more: str) -> None:
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        status_of(["train", "CartPole-v1", "--run-dir", f"{folder}/run", *QUICK, *more])


@many
@given(st.lists(st.tuples(names, texts), min_size=1, max_size=3))
def test_flags(flags: list[tuple[str, str]]) -> None:
    train(*(part for name, value in flags for part in (f"--{name.replace('_', '-')}", value)))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TEXTS) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
values = st.dictionaries(names | st.sampled_from(["options", "env", "algo", "noise_stdev", "x"]), plain, max_size=4)


@many
@given(values)
def test_inline_json(given: dict[str, Any]) -> None:
    train("--config", json.dumps(given))


@many
@given(values | st.binary(max_size=60), st.sampled_from(["toml", "json", "txt"]))
def test_configuration_files(given: Any, kind: str) -> None:
    file = Path(f"config.{kind}")
    file.write_bytes(given if isinstance(given, bytes) else _written(given, kind))
    train("--config", str(file))


def _written(given: dict[str, Any], kind: str) -> bytes:
    try:
        return (json.dumps(given) if kind == "json" else tomli_w.dumps(given)).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError, AttributeError, UnicodeError):  # TOML has no null
        return repr(given).encode("utf-8", "replace")


@many
@given(texts, st.sampled_from(["train", "check", "sweep", *READERS]))
def test_names_of_environments_and_runs(name: str, command: str) -> None:
    more = {"train": QUICK, "sweep": ["--trials", "1", *QUICK], "attach": ["--address", "127.0.0.1:1"]}.get(command, [])
    if command not in ("presets", "runs") or not name.startswith("-"):
        status_of([command, *more, name])


@many
@given(st.sampled_from(["eval", "export", "render", "card", "plot", "report", "runs"]), st.sampled_from(READER_FLAGS), texts)
def test_flags_of_readers(command: str, flag: str, value: str) -> None:
    if not (flag in ("-o", "--format") and "/" in value):
        status_of([command, str(small_run()), *(["--episodes", "1"] if flag != "--episodes" else []), flag, value])
