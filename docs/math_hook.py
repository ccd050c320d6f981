"""Formulas of the site as MathML, which browsers draw without a script. On GitHub and in a terminal they are LaTeX."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\(|\\\[)(.*?)(?:\\\)|\\\])</\1>', re.S)


def on_page_content(text: str, **_: Any) -> str:
    """Replace every formula of a page."""
    return FORMULA.sub(lambda match: mathml(html.unescape(match[2]), match[1] == "div"), text)


def mathml(formula: str, block: bool) -> str:
    """A formula in its own line, or in a sentence."""
    converted: str = convert(formula.strip(), display="block" if block else "inline")
    return converted
