"""The code on the pages works: Python blocks run, commands parse, and the tables are those of the stored results."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from esker.commands.every import WITH_OPTIONS, add_commands
from esker.config.flags import Parser

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
ELSEWHERE = {"coming-from.md", "evolution.md", "extending.md"}  # run by tests of their own
BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```(python|bash)\n(.*?)```", re.S)


def blocks(kind: str) -> list[tuple[str, str]]:
    """The blocks of this language that no mark excludes, with the page's name."""
    found = [(page.name, match) for page in PAGES for match in BLOCK.finditer(page.read_text())]
    return [(name, match[3]) for name, match in found if match[2] == kind and not match[1]]


def commands() -> list[tuple[str, str]]:
    """Every esker command of the pages, without what a shell adds to it."""
    lines = [(name, line) for name, text in blocks("bash") for line in text.replace("\\\n", " ").splitlines()]
    found = [(name, part.strip()) for name, line in lines for part in re.split(r"&&|;|\s&(?:\s|$)|\s\|\s", line)]
    return [(name, part) for name, part in found if part.startswith("esker ")]


@functools.cache
def parser_for(arguments: tuple[str, ...]) -> Parser:
    """The parser of a command line; only `train` and `sweep` have flags that depend on it."""
    parser = Parser(prog="esker")
    add_commands(parser, list(arguments))
    return parser


@pytest.mark.parametrize("page", sorted({name for name, _ in blocks("python")} - (ELSEWHERE - {"coming-from.md"})))
def test_python_on_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}  # one page, one session
    for name, text in blocks("python"):
        if name == page:
            exec(compile(text, name, "exec"), names)


def test_commands_on_the_pages_parse() -> None:
    refused = []
    for name, command in commands():
        if name in ELSEWHERE:
            continue
        arguments = [word for word in shlex.split(command, comments=True)[1:] if not re.match(r"\$|[<>…]|\d>", word)]
        if "--help" in arguments or "--help-all" in arguments or "--version" in arguments or "--config" in arguments:
            continue
        try:
            parser_for(tuple(arguments) if arguments[0] in WITH_OPTIONS else ()).parse_strictly(arguments)
        except Exception as error:
            refused.append(f"{name}: {command}: {error}")
    assert len(commands()) > 80
    assert refused == []


def test_commands_of_the_three_ideas_do_what_the_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "three-ideas.md").read_text()
    script = "\n".join(re.findall(r"```bash\n(.*?)```", page, re.S))
    program = tmp_path / "bin" / "esker"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m esker "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    command = ["bash", "-ec", script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("identical") == 2
    assert "using an older one and replaying the facts" in " ".join((done.stdout + done.stderr).split())


def test_the_tables_are_those_of_the_stored_results() -> None:
    command = [sys.executable, str(ROOT / "docs" / "make_evidence.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
