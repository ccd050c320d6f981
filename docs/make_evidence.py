"""Writes every generated table of README.md and docs/ from benchmarks/results: python docs/make_evidence.py [--check]

A table stands between `<!-- generated: NAME -->` and `<!-- end -->`; docs/evidence_tables.py has a function for each NAME.
A value within a sentence stands between `<!-- value: NAME -->` and `<!-- end -->`; docs/evidence_values.py has those.
Excerpts of the source are filled in by docs/page_code.py.
Curves are drawn as small SVG files in docs/evidence/curves. `--check` writes nothing and fails where a file would change.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import evidence_device
import evidence_tables
from evidence_curves import curve_svg
from evidence_plots import updates_svg
from evidence_text import load, stored
from evidence_values import VALUES
from page_code import CODE, with_code

ROOT = Path(__file__).parent.parent
CURVES = ROOT / "docs" / "evidence" / "curves"
BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
VALUE = re.compile(r"(<!-- value: ([\w-]+) -->).*?(<!-- end -->)")


def wanted() -> dict[Path, str]:
    """Every file that this script is responsible for, as it should be."""
    pages = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text()
        filled = BLOCK.sub(lambda match: f"{match[1]}\n{evidence_tables.TABLES[match[2]]()}\n\n{match[3]}", text)
        filled = VALUE.sub(lambda match: f"{match[1]}{VALUES[match[2]]()}{match[3]}", filled)
        if BLOCK.search(text) or VALUE.search(text) or CODE.search(text):
            pages[page] = with_code(filled)
    for result in evidence_tables.learning_results():
        pages[CURVES / f"{result.file}.svg"] = curve_svg(result.data)
    pages[CURVES / "halfcheetah-64-seeds.svg"] = curve_svg(evidence_device.seeds_data())
    if stored("peers"):
        pages[CURVES / "peers-updates.svg"] = updates_svg(load("peers")["updates"])
    return pages


def main(arguments: list[str]) -> int:
    """Write, or only compare."""
    changed = [path for path, text in wanted().items() if not path.exists() or path.read_text() != text]
    if "--check" in arguments:
        for path in changed:
            print(f"{path.relative_to(ROOT)} differs from benchmarks/results; run: python docs/make_evidence.py")
        return int(bool(changed))
    for path, text in wanted().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{len(changed)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
