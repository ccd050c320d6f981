"""Figures and videos that a notebook displays, and that are files elsewhere."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Picture:
    """A drawn figure: a PNG that a notebook shows, kept in a file where one was named."""

    png: bytes = field(repr=False)
    path: Path | None = None
    notes: tuple[str, ...] = ()

    def save(self, path: str | Path) -> Path:
        """Write the PNG."""
        target = Path(path)
        target.write_bytes(self.png)
        return target

    def _repr_png_(self) -> bytes:
        return self.png


@dataclass(frozen=True)
class Video:
    """Recorded episodes: an mp4 that a notebook plays."""

    path: Path
    checkpoint: int
    returns: list[float]

    def _repr_html_(self) -> str:
        encoded = base64.b64encode(self.path.read_bytes()).decode()
        kind = "image/gif" if self.path.suffix == ".gif" else "video/mp4"
        if kind == "image/gif":
            return f"<img src='data:{kind};base64,{encoded}'>"
        return f"<video controls loop muted playsinline src='data:{kind};base64,{encoded}'></video>"
