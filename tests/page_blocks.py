"""The code blocks of the pages. A block is executed by a test unless a line in italics above it states what it needs.

Such a line begins with Needs, Takes or Waits and is all that stands between blank lines: `*Needs a GPU.*`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BLOCK = re.compile(r"(?:^\*((?:Needs|Takes|Waits) [^*\n]+)\*\n\n)?^```(python|bash)\n(.*?)^```$", re.S | re.M)


@dataclass(frozen=True)
class Block:
    """Code of a page, and what it needs if a test cannot run it."""

    page: str
    language: str
    text: str
    needs: str | None


def blocks(language: str | None, page: str | None = None) -> list[Block]:
    """Every block of a language, or of both; of all pages, or one."""
    found = [(one.name, match) for one in PAGES for match in BLOCK.finditer(one.read_text()) if page in (None, one.name)]
    return [Block(name, match[2], match[3], match[1]) for name, match in found if language in (None, match[2])]


def commands(block: Block) -> list[str]:
    """The commands of a bash block, without comments."""
    lines = re.sub(r"\s+# .*", "", block.text.replace("\\\n", " "), flags=re.M).splitlines()
    return [part.strip() for line in lines for part in line.split("&&") if part.strip() and not part.startswith("#")]
