"""The table of the fault campaigns."""

from __future__ import annotations

from evidence_text import load, table


def campaigns() -> str:
    """What was provoked, how often, and what was wrong."""
    data = load("faults")
    rows = [
        [f"`{one['command']}`", one["provoked"], one["seen"], one["faults"], f"`{one['commit']}`"]
        for one in data["campaigns"]
    ]
    where = f"{data['date']}, {data['machine']}, busy with other work all the while."
    return f"{where}\n\n" + table(["command", "provoked", "seen", "faults", "commit"], rows)
