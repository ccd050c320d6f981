"""The wheel works without the repository, and knows its commit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from esker.system.version import version_text

ROOT = Path(__file__).parent.parent


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository")
def test_the_wheel_works_in_an_empty_environment(tmp_path: Path) -> None:
    environment = os.environ | {"DIST": str(tmp_path), "GITHUB_REPOSITORY": "somebody/esker"}
    done = subprocess.run(
        [ROOT / ".ci" / "release", sys.executable], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (source,) = tmp_path.glob("esker-*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"examples/cartpole.py", "docs/index.md", "tests/test_release.py", "esker/COMMIT"} <= names
    (wheel,) = tmp_path.glob("esker-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    assert "Author: The esker authors\n" in metadata
    assert "Project-URL: Repository, https://github.com/somebody/esker\n" in metadata


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository")
def test_the_version_of_a_checkout_names_its_commit() -> None:
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    found = re.fullmatch(r"\d+\.\d+\.\d+ \(commit ([0-9a-f]{7,})(, changed)?\)", version_text())
    assert found
    assert head.startswith(found[1])


def test_the_versions_of_package_and_citation_agree() -> None:
    import esker

    assert f"version: {esker.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["authors"] == [{"name": "The esker authors"}]
