"""Functions of the source, as they are, for the pages: between `<!-- code: FILE NAME CLASS.METHOD -->` and an end mark."""

from __future__ import annotations

import ast
import re
import textwrap

from evidence_text import ROOT

CODE = re.compile(r"(<!-- code: (\S+) ([^>]+?) -->\n).*?(<!-- end -->)", re.S)


def with_code(text: str) -> str:
    """A page's text with every such block filled in."""
    return CODE.sub(lambda match: f"{match[1]}\n```py\n{excerpt(match[2], match[3].split())}\n```\n\n{match[4]}", text)


def excerpt(file: str, names: list[str]) -> str:
    """The named functions of a file, one after the other."""
    source = (ROOT / file).read_text()
    tree = ast.parse(source)
    return "\n\n".join(textwrap.dedent(function(source, tree, name)) for name in names)


def function(source: str, tree: ast.Module, name: str) -> str:
    """The lines of a function, or of a method as CLASS.METHOD."""
    found: ast.AST = tree
    for part in name.split("."):
        found = next(node for node in ast.iter_child_nodes(found) if getattr(node, "name", None) == part)
    text = ast.get_source_segment(source, found, padded=True)
    assert text is not None, name
    return text
