"""Videos: H.264 that every browser plays, GIF, and text burnt into frames."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.errors import UsageError

Frame = NDArray[np.uint8]
GIF_FPS = 25  # browsers play a GIF's frames no faster than 50 a second, and few need more than half of that


class VideoWriter:
    """An mp4 that grows frame by frame: H.264, yuv420p, the index in front so that it plays while it loads."""

    def __init__(self, path: Path, fps: float, size: tuple[int, int | None] | None = None) -> None:
        av = _package("av")
        self.path, self.frames, self._size = path, 0, size
        self._av = av
        try:  # an absolute path: what stands before a colon is no protocol there
            self._container = av.open(str(path.absolute()), "w", format="mp4", options={"movflags": "+faststart"})
        except OSError as error:  # PyAV does not name the file
            raise OSError(error.errno, error.strerror, str(path)) from error
        self._stream = self._container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        self._stream.pix_fmt = "yuv420p"
        self._stream.options = {"crf": "23", "preset": "fast"}

    def add(self, frame: Frame) -> None:
        """Append a frame; the first one sets the size unless one was given."""
        if self.frames == 0:
            self._size = even_size(frame.shape[1], frame.shape[0], self._size)
            self._stream.width, self._stream.height = self._size
        assert self._size is not None
        width, height = self._size
        picture = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(scale(frame, (width, height or width))), "rgb24")
        for packet in self._stream.encode(picture):
            self._container.mux(packet)
        self._last = frame
        self.frames += 1

    def pause(self, frames: int) -> None:
        """Hold the last picture, darkened, to separate what follows; these are not counted among `frames`."""
        dark, before = self._last // 3, self.frames
        for _ in range(max(1, frames)):
            self.add(dark)
        self.frames = before

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            for packet in self._stream.encode():
                self._container.mux(packet)
        self._container.close()


def frames_of(path: Path) -> Iterator[Frame]:
    """The frames of a video file, decoded one by one."""
    with _package("av").open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


def write_gif(video: Path, path: Path, fps: float) -> None:
    """A GIF of a video that loops forever and keeps its pace; frames beyond 25 a second are left out."""
    image = _package("PIL.Image")
    every = max(1, round(fps / GIF_FPS))
    pictures = (
        image.fromarray(frame).quantize(128, method=image.Quantize.FASTOCTREE)
        for number, frame in enumerate(frames_of(video))
        if number % every == 0
    )
    first = next(pictures)
    milliseconds = max(20, round(1000 * every / fps))
    first.save(path, "GIF", save_all=True, append_images=pictures, duration=milliseconds, loop=0)


def caption(frame: Frame, text: str) -> Frame:
    """The frame with a line of text burnt into its upper left corner."""
    image, draw, font = _package("PIL.Image"), _package("PIL.ImageDraw"), _package("PIL.ImageFont")
    size = max(10, frame.shape[0] // 22)
    face = font.load_default(size)
    picture = image.fromarray(frame)
    pen = draw.Draw(picture, "RGBA")
    left, _, right, bottom = pen.textbbox((size // 2, size // 3), text, font=face)
    pen.rectangle((left - size // 2, 0, right + size // 2, bottom + size // 3), fill=(16, 20, 28, 190))
    pen.text((size // 2, size // 3), text, font=face, fill=(255, 255, 255, 255))
    return np.asarray(picture)


def even_size(width: int, height: int, wanted: tuple[int, int | None] | None) -> tuple[int, int]:
    """The size to encode: the given one, a missing height by proportion, both even as yuv420p needs them."""
    if wanted is not None:
        width, height = wanted[0], wanted[1] or round(height * wanted[0] / width)
    return max(2, width // 2 * 2), max(2, height // 2 * 2)


def scale(frame: Frame, size: tuple[int, int]) -> Frame:
    """The frame at another size; a difference of one row or column is cut off rather than blurred."""
    width, height = size
    if 0 <= frame.shape[1] - width <= 1 and 0 <= frame.shape[0] - height <= 1:
        return frame[:height, :width]
    image = _package("PIL.Image")
    return np.asarray(image.fromarray(frame).resize(size, image.Resampling.LANCZOS))


def _package(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError("videos need PyAV and Pillow; pip install 'esker[video]'") from error
