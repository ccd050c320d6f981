"""A function over tensors at fixed addresses, captured as a CUDA graph: one launch instead of dozens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

WARM_UP = 3


class Graphed:
    """Calls a function without arguments; on a GPU, replays what it launched. The result is the same tensors every time.

    What cannot be captured is called plainly. Must be made and called under the same stream, which is not the default one.
    """

    def __init__(self, function: Callable[[], Any], device: torch.device) -> None:
        self._function = function
        self._graph: Any = None
        self._result: Any = None
        if device.type == "cuda":
            self._capture()

    @property
    def captured(self) -> bool:
        """Whether a graph is replayed."""
        return self._graph is not None

    def _capture(self) -> None:
        stream = torch.cuda.current_stream()
        for _ in range(WARM_UP):
            self._function()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, stream=stream):
                self._result = self._function()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:  # something in it waits for the GPU or allocates in its own way
            torch.cuda.synchronize()
            return
        self._graph = graph

    def __call__(self) -> Any:
        if self._graph is None:
            return self._function()
        self._graph.replay()
        return self._result
