"""Speed of a low-rank population of a language model against pure inference of the same batch by the same code."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from esker.functions.lowrank.batches import evaluation_copy
from esker.functions.lowrank.int8 import round_weights, write
from esker.functions.lowrank.layers import convert
from esker.functions.lowrank.loaded import Loaded
from esker.functions.lowrank.parts import parts_of
from esker.functions.lowrank.strategy import LowRankES, Rates
from esker.functions.parameters import FlatParameters, layout_of
from esker.language.evolution import linear_weights
from esker.language.generation import Decoding, Generator, Speedups
from esker.language.models import LanguageModel

MODES = {
    "eager": Speedups(capture=False),
    "captured": Speedups(capture=True),
    "compiled and captured": Speedups(capture=True, compile=True),
}


class Shape:
    """Members, prompts for each, prompt tokens and new tokens."""

    def __init__(self, members: int, prompts: int, length: int, new: int, rank: int, dtype: torch.dtype) -> None:
        self.members, self.prompts, self.length, self.new, self.rank, self.dtype = members, prompts, length, new, rank, dtype

    @property
    def tokens(self) -> int:
        """New tokens of a generation."""
        return self.members * self.prompts * self.new

    def inputs(self, rows: int, device: torch.device, vocabulary: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Random prompts without padding."""
        ids = torch.randint(3, vocabulary, (rows, self.length), device=device)
        return ids, torch.ones(rows, self.length, dtype=torch.bool, device=device)


class Inference:
    """The unperturbed model on a batch of sequences."""

    def __init__(self, language: LanguageModel, shape: Shape, rows: int, device: torch.device, mode: str) -> None:
        self.model = evaluation_copy(language.model, device, shape.dtype)
        self.notes: list[str] = []
        decoding = Decoding(shape.new, (), language.pad_id)
        self.make = Generator(self.model, rows, shape.length, decoding, MODES[mode], self.notes.append)
        self.inputs = shape.inputs(rows, device, language.model.config.vocab_size)

    def __call__(self) -> None:
        self.make(*self.inputs)


class Population(Inference):
    """A whole generation but for the scores: noise, centre, completions, update."""

    def __init__(self, language: LanguageModel, shape: Shape, device: torch.device, mode: str, int8: bool = False) -> None:
        super().__init__(language, shape, (shape.members + 2) * shape.prompts, device, mode)
        layout = layout_of(language.model, linear_weights(language.model))
        flat = FlatParameters(self.model, layout)
        parts = parts_of(self.model, flat, shape.rank)
        rates = Rates(population=shape.members, sigma=0.006, lr=3.6e-5, optimizer="sgd", shaping="normalized")
        start = torch.cat([tensor.detach().float().reshape(-1) for tensor in flat.parts])
        self.es = LowRankES(start, parts, rates, 0, device)
        if int8:
            round_weights(self.model, parts)
        self.tensors = FlatParameters(self.model, layout).parts
        self.loaded = Loaded(parts, shape.members // 2 + 1, 2, shape.dtype, device)
        convert(self.model, parts, self.loaded)
        self.update, self.fitness = True, np.random.default_rng(0).standard_normal(shape.members)
        self.signs = torch.tensor([1.0, -1.0], device=device) * 0.006

    def __call__(self) -> None:
        if self.update:
            center, parts = self.es.center, self.es.parts.parts
            with torch.no_grad():
                write(self.tensors, [center[part.at].view(part.shape) for part in parts])
            self.loaded.load(self.es.noise(range(self.es.directions)), self.signs.expand(self.es.directions, -1))
        super().__call__()
        if self.update:
            self.es.tell(self.fitness)


class OneByOne(Inference):
    """One member at a time, as published codes do it: full noise is added to the weights and taken away again."""

    def __init__(self, language: LanguageModel, shape: Shape, device: torch.device, mode: str, members: int) -> None:
        super().__init__(language, shape, shape.prompts, device, mode)
        self.members = members
        names = set(linear_weights(language.model))
        self.weights = [tensor for name, tensor in self.model.named_parameters() if name in names]

    def __call__(self) -> None:
        for member in range(self.members):
            self._add(member, 0.006)
            super().__call__()
            self._add(member, -0.006)

    @torch.no_grad()
    def _add(self, member: int, scale: float) -> None:
        generator = torch.Generator(self.weights[0].device).manual_seed(member)
        for weight in self.weights:
            weight.add_(
                torch.randn(weight.shape, generator=generator, dtype=weight.dtype, device=weight.device), alpha=scale
            )


def seconds_of(do: Callable[[], None], device: torch.device, rounds: int) -> float:
    """Seconds of a call, the mean of some."""
    _wait(device)
    start = time.perf_counter()
    for _ in range(rounds):
        do()
    _wait(device)
    return (time.perf_counter() - start) / rounds


def compare(language: LanguageModel, shape: Shape, device: torch.device, mode: str, rounds: int = 5) -> dict[str, Any]:
    """Inference and population in turns; the ratio is the median of the rounds'."""
    _reset(device)
    start = time.perf_counter()
    inference = Inference(language, shape, shape.members * shape.prompts, device, mode)
    seconds_of(inference, device, 1)
    inference_memory, inference_setup = _memory(device), time.perf_counter() - start
    start = time.perf_counter()
    population = Population(language, shape, device, mode)
    seconds_of(population, device, 1)
    setup = time.perf_counter() - start
    count = 2 if shape.new <= 32 else 1
    pairs = [(seconds_of(inference, device, count), seconds_of(population, device, count)) for _ in range(rounds)]
    population.update = False
    without = statistics.median(seconds_of(population, device, count) for _ in range(rounds))
    pure = statistics.median(a for a, _ in pairs)
    whole = statistics.median(b for _, b in pairs)
    return {
        "mode": mode,
        "rank": shape.rank,
        "members": shape.members,
        "prompts": shape.prompts,
        "prompt_tokens": shape.length,
        "new_tokens": shape.new,
        "dtype": str(shape.dtype),
        "inference_seconds": pure,
        "population_seconds": whole,
        "population_seconds_without_update": without,
        "inference_tokens_per_second": shape.tokens / pure,
        "population_tokens_per_second": shape.tokens / whole,
        "ratio": statistics.median(a / b for a, b in pairs),
        "ratios": [a / b for a, b in pairs],
        "ratio_without_update": pure / without,
        "memory_inference_gb": inference_memory,
        "memory_both_gb": _memory(device),
        "setup_seconds": [inference_setup, setup],
        "notes": inference.notes + population.notes,
    }


def one_by_one(language: LanguageModel, shape: Shape, device: torch.device, mode: str, members: int = 8) -> dict[str, Any]:
    """Seconds and tokens per second where every member is written into the weights."""
    _reset(device)
    run = OneByOne(language, shape, device, mode, members)
    seconds_of(run, device, 1)
    seconds = seconds_of(run, device, 1) / members
    rate = shape.prompts * shape.new / seconds
    return {"mode": f"one by one, {mode}", "seconds_per_member": seconds, "tokens_per_second": rate, "notes": run.notes}


def memory(language: LanguageModel, shape: Shape, device: torch.device, mode: str) -> dict[str, Any]:
    """The most memory that inference and a population of the same batch take, beside the model that they were made from."""
    rows = (shape.members + 2) * shape.prompts
    inference, _ = _peak(lambda: Inference(language, shape, rows, device, mode), device)
    population, parts = _peak(lambda: Population(language, shape, device, mode), device)
    return {
        "mode": mode,
        "members": shape.members,
        "prompts": shape.prompts,
        "prompt_tokens": shape.length,
        "new_tokens": shape.new,
        "rank": shape.rank,
        "inference_bytes": inference,
        "population_bytes": population,
        "moving_parameters": parts.dimension,
        "normals_per_direction": parts.count,  # r·(m+n), summed over matrices
    }


def _peak(make: Callable[[], Inference], device: torch.device) -> tuple[int, Any]:
    """The most bytes that making and calling it twice needs, and what moves."""
    gc.collect()
    _reset(device)
    before = torch.cuda.memory_allocated() if device.type == "cuda" else 0
    run = make()
    seconds_of(run, device, 2)
    most = torch.cuda.max_memory_allocated() - before if device.type == "cuda" else 0
    return most, run.es.parts if isinstance(run, Population) else None


def int8(language: LanguageModel, shape: Shape, device: torch.device, mode: str, rounds: int = 3) -> dict[str, Any]:
    """A generation with int8 weights against one with weights in the type of evaluation, in turns."""
    _reset(device)
    runs = [Population(language, shape, device, mode, int8=kind) for kind in (False, True)]
    for run in runs:
        seconds_of(run, device, 1)
    pairs = [[seconds_of(run, device, 1) for run in runs] for _ in range(rounds)]
    weights = [sum(t.numel() * t.element_size() for t in run.tensors) for run in runs]
    return {
        "mode": f"int8, {mode}",
        "members": shape.members,
        "prompts": shape.prompts,
        "prompt_tokens": shape.length,
        "new_tokens": shape.new,
        "seconds": pairs,
        "ratio": statistics.median(b / a for a, b in pairs),
        "weight_bytes": weights,
        "notes": runs[0].notes + runs[1].notes,
    }


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _reset(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _memory(device: torch.device) -> float | None:
    return torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else None
