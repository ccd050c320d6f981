"""The pages name only what exists: files, links, options and commands."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
MEASURED = re.compile(
    r"\d[\d.,]* ?(?:µs\b|ms\b|steps/s|updates/s|steps a second|times as (?:fast|long)|s of processor time)"
)
FRACTION = re.compile(r"(?<![\w.-])\d+\.\d+(?![\w.])|\d,\d{3}|\d ?%(?!\s(?:stratified\s)?bootstrap)")
NUMBER = re.compile(r"(?<![\w-])(?:\d+(?:[.,]\d+)+|\d{2,})(?![\w-])|(?<![\w-])\d+[kM%]")
EVIDENCE = [*sorted((DOCS / "evidence").glob("*.md")), DOCS / "performance.md", ROOT / "README.md"]
NAMED = ("changelog.md", "versions.md")  # their numbers are names of versions
GUIDES = [page for page in DOCS.glob("*.md") if page not in EVIDENCE and page.name not in NAMED]


def typed(page: Path) -> str:
    """The text of a page that nobody generates: no tables and values from results, no code, links, pictures or formulas."""
    generated = r"<!-- (?:generated|value): .*?<!-- end -->|```.*?```|`[^`]*`|\]\([^)]*\)|<img [^>]*>|\$[^$]*\$"
    return re.sub(generated, "", page.read_text(), flags=re.S)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs write them for these pages."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = re.findall(r"`((?:esker|tests|benchmarks|examples|docs)/[\w./-]+\.\w+)`", page.read_text())
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", target):
            continue
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            broken.append(link)
    assert broken == []


def test_every_room_is_on_the_map() -> None:
    rooms = {path.name for path in (ROOT / "esker").iterdir() if (path / "__init__.py").exists()}
    named = set(re.findall(r"`(\w+)/`", (DOCS / "architecture.md").read_text()))
    assert rooms <= named


def test_the_reference_names_what_exists_and_leaves_out_nothing_public() -> None:
    import esker

    paths = re.findall(r"^::: ([\w.]+)$", (DOCS / "reference.md").read_text(), re.M)
    found = {
        path.rpartition(".")[2]: getattr(importlib.import_module(path.rpartition(".")[0]), path.rpartition(".")[2])
        for path in paths
    }
    public = set(esker.__all__) - {"__version__", "presets"}
    assert public <= set(found)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.name)
def test_a_guide_has_no_measured_figures(page: Path) -> None:
    """Rates, decimals, thousands and percentages are measured, unless they are options in code spans."""
    text = typed(page)
    assert MEASURED.findall(text) + FRACTION.findall(text) == []


@pytest.mark.parametrize("page", EVIDENCE, ids=lambda page: page.name)
def test_every_number_of_a_page_with_evidence_is_generated(page: Path) -> None:
    """Options in code spans may have digits, and single digits count things; everything else comes from a stored result."""
    text = typed(page)
    assert [row for row in re.findall(r"^\|.*$", text, re.M) if re.search(r"\d", row)] == []
    assert MEASURED.findall(text) + NUMBER.findall(text) == []


def test_a_value_stands_within_its_line() -> None:
    """A line that begins with a comment is raw HTML in Markdown."""
    assert [str(page) for page in PAGES if re.search(r"^<!-- value:", page.read_text(), re.M)] == []
