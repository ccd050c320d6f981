"""metrics.csv in the run folder: the journal as a table."""

from __future__ import annotations

import csv
from typing import Any

from esker.algorithms.observer import Returns, Row
from esker.runs.folder import RunFolder


class CsvFile:
    """A line per row of the journal, under the journal's names; complete after every resume."""

    def begin(self, config: Any, folder: RunFolder, rows: list[Row]) -> str | None:
        """Rewrite the file from the journal: after a crash the two agree again."""
        self.folder = folder
        self._rewrite(rows)
        return None

    def generation(self, row: Row, returns: Returns | None) -> None:
        """Add a line; a name that no earlier row had makes a new column."""
        if not self.columns.issuperset(row):
            self._rewrite(self.folder.rows())
            return
        self.writer.writerow(row)
        self.file.flush()

    def end(self, reason: str) -> None:
        """Close the file."""
        self.file.close()

    def _rewrite(self, rows: list[Row]) -> None:
        columns = dict.fromkeys(name for row in rows for name in row)
        self.columns = frozenset(columns)
        self.file = (self.folder.path / "metrics.csv").open("w", newline="")
        self.writer = csv.DictWriter(self.file, list(columns))
        if columns:
            self.writer.writeheader()
        self.writer.writerows(rows)
        self.file.flush()
