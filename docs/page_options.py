"""The page of options: what `esker train --help-all` lists, for every algorithm."""

from __future__ import annotations

import argparse
import sys

from evidence_text import ROOT, table

sys.path.insert(0, str(ROOT))

from esker.algorithms import registry
from esker.config.flags import add_options

Rows = dict[str, tuple[str, ...]]  # by flag: the section, the help


def rows(algorithm: str) -> Rows:
    """The options of an algorithm."""
    parser = argparse.ArgumentParser(add_help=False)
    add_options(parser, registry.options_of(algorithm))
    return {
        action.option_strings[0]: (str(group.title), str(action.help).replace("%%", "%").replace("|", "\\|"))
        for group in parser._action_groups
        for action in group._group_actions
    }


def options() -> str:
    """All options of `es` by section, and how the other algorithms differ."""
    common = rows("es")
    parts = []
    for section in dict.fromkeys(section for section, _ in common.values()):
        cells = [[f"`{flag}`", text] for flag, (found, text) in common.items() if found == section]
        parts.append(f"## {section.capitalize()}\n\n{table(['option', 'meaning'], cells)}")
    for algorithm in registry.names():
        if algorithm != "es":
            cells = [[f"`{flag}`", text] for flag, (_, text) in rows(algorithm).items() if differs(common, flag, text)]
            parts.append(f"## `--algo {algorithm}`\n\n{table(['option', 'meaning'], cells)}")
    return "\n\n".join(parts)


def differs(common: Rows, flag: str, text: str) -> bool:
    """Whether `es` lacks this option, or has another default for it."""
    return flag not in common or common[flag][1] != text
