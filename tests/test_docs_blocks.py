"""Commands of the pages parse, also those that are not run, and the tables are those of the stored results."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from page_blocks import blocks, commands

from esker.commands.every import WITH_OPTIONS, add_commands
from esker.config.flags import Parser

ROOT = Path(__file__).parent.parent
ELSEWHERE = {"coming-from.md", "evolution.md", "extending.md"}  # run by tests of their own


def esker_commands() -> list[tuple[str, str]]:
    """Every esker command of the pages, of blocks that are not run too, without what a shell adds to it."""
    lines = [(block.page, line) for block in blocks("bash") for line in commands(block)]
    found = [(name, part.strip()) for name, line in lines for part in re.split(r";|\s&(?:\s|$)|\s\|\s", line)]
    return [(name, part) for name, part in found if part.startswith("esker ")]


@functools.cache
def parser_for(arguments: tuple[str, ...]) -> Parser:
    """The parser of a command line; only `train` and `sweep` have flags that depend on it."""
    parser = Parser(prog="esker")
    add_commands(parser, list(arguments))
    return parser


def test_commands_on_the_pages_parse() -> None:
    refused = []
    for name, command in esker_commands():
        if name in ELSEWHERE:
            continue
        arguments = [word for word in shlex.split(command, comments=True)[1:] if not re.match(r"\$|[<>…]|\d>", word)]
        if "--help" in arguments or "--help-all" in arguments or "--version" in arguments or "--config" in arguments:
            continue
        try:
            parser_for(tuple(arguments) if arguments[0] in WITH_OPTIONS else ()).parse_strictly(arguments)
        except Exception as error:
            refused.append(f"{name}: {command}: {error}")
    assert len(esker_commands()) > 80
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
