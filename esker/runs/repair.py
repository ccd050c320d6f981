"""Repair of a run folder before it is resumed: what is intact stays, what is damaged is moved aside and reported."""

from __future__ import annotations

import json
from typing import Any

import tomli_w

from esker.errors import Damage
from esker.runs import checkpoints
from esker.runs.facts import Scan
from esker.runs.files import keep_aside, read_plain, write_whole
from esker.runs.folder import RunFolder
from esker.runs.pointers import wanted
from esker.runs.seals import seal_json, seal_toml
from esker.system import disk


def repair(folder: RunFolder) -> list[str]:
    """Repair configuration, facts and journal; returns what was done. The generation in flight was never a fact."""
    notices: list[str] = [*repair_texts(folder)]
    count, found = folder.committed(), folder.scan()
    lost = sorted(set(range(count)) - found.records.keys())
    if found.problems or lost:
        notices.append(_repair_facts(folder, found, count, lost))
    elif found.torn is not None:
        disk.truncate(folder.facts_file, found.torn)
        notices.append(f"facts ended in a damaged record: cut back to {count} committed generations")
    rows = folder.rows()
    kept = [row for row, before in zip(rows, [None, *rows], strict=False) if _follows(row, before, count)]
    if folder.journal_file.exists() and not _is_whole(folder, len(kept)):
        write_whole(folder.journal_file, "".join(json.dumps(row) + "\n" for row in kept))
        notices.append(f"journal.jsonl was damaged or ahead: rewritten from generation {len(kept)} on")
    return notices + _repair_best(folder, count)


def _is_whole(folder: RunFolder, rows: int) -> bool:
    """Whether the journal is exactly this many rows."""
    text = folder.journal_text()
    whole = text.endswith("\n") or not text
    return whole and text.count("\n") == rows and folder.journal_file.stat().st_size == len(text.encode())


def _repair_best(folder: RunFolder, count: int) -> list[str]:
    """Let `best` name the best centre's snapshot again, where it is there."""
    best, notices = wanted(folder, "best", count)
    if not notices or not (folder.checkpoints / checkpoints.folder_name(best)).is_dir():
        return []
    checkpoints.point(folder.best_file, best)
    return notices


def repair_texts(folder: RunFolder) -> list[Damage]:
    """Restore configuration and description from intact copies; the damaged files are kept aside."""
    values, about = folder.values(), folder.about()
    for file, text in ((folder.config_file, seal_toml(tomli_w.dumps(values))), (folder.about_file, seal_json(about))):
        if any(notice.startswith(file.name) for notice in folder.damage):
            keep_aside(file)
            write_whole(file, text, durable=True)
    damage, folder.damage = folder.damage, []
    return damage


def _repair_facts(folder: RunFolder, found: Scan, count: int, lost: list[int]) -> Damage:
    """Keep the intact records that lead somewhere, in order."""
    aside = keep_aside(folder.facts_file) if found.problems else None
    if found.problems or found.torn is not None:
        kept = [found.records[generation] for generation in sorted(found.records) if generation < count]
        data = read_plain(folder.facts_file) if kept else b""
        write_whole(folder.facts_file, b"".join(data[record.start : record.end] for record in kept), durable=True)
    if not found.problems and found.torn is not None:
        ends = f"facts ended in a damaged record: cut back to {found.reach(0)} committed generations"
        return Damage(f"{ends}; continuing with {count}, since a newer checkpoint is intact")
    problems = list(found.problems[:3]) + ([f"{len(found.problems) - 3} more"] if len(found.problems) > 3 else [])
    gone = f"generations {lost[0]} to {lost[-1]}" if len(lost) > 1 else f"generation {lost[0]}" if lost else ""
    why = "; ".join([*problems, *([f"the records of {gone} are lost"] if gone else [])])
    where = f" (the file as it was: {aside.name})" if aside else ""
    return Damage(f"facts are damaged: {why}; continuing with {count} committed generations{where}")


def _follows(row: dict[str, Any], before: dict[str, Any] | None, count: int) -> bool:
    """Whether a row of the journal has its place: behind the one before it, and committed."""
    at = -1 if before is None else before["generation"]
    return bool(at < row["generation"] < count)
