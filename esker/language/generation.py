"""Batched generation with a fixed shape: greedy or sampled, its prompt pass and its step captured as CUDA graphs.

Every tensor is a buffer that is overwritten in place, so that one captured step serves all tokens of all generations.
On a CPU, or where capturing fails, the same functions run as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from esker.errors import UsageError, named_line
from esker.language.attention import attending_in_groups
from esker.language.cache import FixedCache, Slot

ALIGN = 16  # lengths of a cache: fused attention kernels need masks of such lengths
WARM_UP = 3  # tokens made before capturing
LOOK = 8  # steps between checks whether every sequence has ended
OF_A_DEVICE = ("CUDA", "cuDNN", "CUBLAS", "allocate memory")  # in messages that say nothing about the model


@dataclass(frozen=True)
class Decoding:
    """How completions are made."""

    max_new_tokens: int
    stop_ids: tuple[int, ...]  # tokens that end a completion
    pad_id: int
    temperature: float = 0.0  # 0: the most likely token


@dataclass(frozen=True)
class Speedups:
    """Optimisations for speed; one that fails is skipped with a notice."""

    capture: bool = True  # the prompt pass and the step as CUDA graphs
    compile: bool = False  # torch.compile for each decoder layer


class Generator:
    """Completions for `rows` sequences of `length` prompt tokens, padded on the left."""

    def __init__(
        self,
        model: nn.Module,
        rows: int,
        length: int,
        decoding: Decoding,
        speedups: Speedups | None = None,
        note: Callable[[str], None] = print,
    ) -> None:
        _refuse_window(model, length + decoding.max_new_tokens)
        _uncompile(model)  # a generator of another shape may have left its cache in there
        like = next(model.parameters())
        self.model, self.rows, self.length, self.decoding = model, rows, length, decoding
        self.speedups, self.note, self.device = speedups or Speedups(), note, like.device
        width = max(decoding.max_new_tokens, WARM_UP)
        most = -(-(length + width) // ALIGN) * ALIGN
        self.cache = FixedCache(most, self.device)
        self.prompt = self._integers(rows, length)
        self.valid = torch.ones(rows, length, dtype=torch.bool, device=self.device)
        self.token, self.position = self._integers(rows, 1), self._integers(rows, 1)
        self.mask = torch.zeros(rows, 1, 1, most, dtype=like.dtype, device=self.device)
        self.done = torch.zeros(rows, dtype=torch.bool, device=self.device)
        self.column = self._integers(1)
        self.out = self._integers(rows, width)
        self.noise = torch.zeros(rows, width, device=self.device)
        self.greedy = torch.ones((), dtype=torch.bool, device=self.device)  # no noise was given
        self.stops = torch.tensor(decoding.stop_ids, dtype=torch.int64, device=self.device)
        self._fill: Callable[[], None] = self._prompt_pass
        self._next: Callable[[], None] = self._step
        self._ready = False

    def __call__(self, prompt: torch.Tensor, valid: torch.Tensor, noise: torch.Tensor | None = None) -> torch.Tensor:
        """(rows, max_new_tokens) token ids; what follows a stop is padding.

        `noise` are uniform numbers for sampling; without them, the most likely tokens are taken at any temperature.
        """
        self.prompt.copy_(prompt)
        self.valid.copy_(valid)
        self.greedy.fill_(noise is None)
        if noise is not None:
            self.noise[:, : noise.shape[1]] = noise
        with torch.no_grad(), plain_kernels(), attending_in_groups(self.model):
            if not self._ready:
                self._prepare()
            self._fill()
            for step in range(1, self.decoding.max_new_tokens):
                if step % LOOK == 0 and bool(self.done.all()):
                    break
                self._next()
        return self.out[:, : self.decoding.max_new_tokens]

    def _integers(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.int64, device=self.device)

    def _prompt_pass(self) -> None:
        self.cache.filling = True
        valid, length = self.valid, self.length
        causal = torch.ones(length, length, dtype=torch.bool, device=self.device).tril()
        itself = torch.eye(length, dtype=torch.bool, device=self.device)  # padding sees itself, so that no row is empty
        allowed = causal & (valid[:, None, None, :] | itself)
        self.out.fill_(self.decoding.pad_id)
        self.done.zero_()
        self.column.zero_()
        self.cache.place.fill_(length)
        self.position.copy_(valid.sum(1, keepdim=True))
        self.mask.fill_(-torch.inf)
        self.mask[:, 0, 0, :length].masked_fill_(valid, 0.0)
        positions = (valid.long().cumsum(1) - 1).clamp(min=0)
        self._take(self._logits(self.prompt, _added(allowed, self.mask.dtype), positions))

    def _step(self) -> None:
        self.cache.filling = False
        self.mask.index_fill_(3, self.cache.place, 0.0)
        logits = self._logits(self.token, self.mask, self.position)
        self.cache.place.add_(1)
        self.position.add_(1)
        self._take(logits)

    def _logits(self, tokens: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        out = self.model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return out.logits[:, -1]

    def _take(self, logits: torch.Tensor) -> None:
        """Choose the next token of every row and write it down."""
        chosen = logits.argmax(-1)
        if self.decoding.temperature:
            chosen = torch.where(self.greedy, chosen, self._sampled(logits))
        chosen = torch.where(self.done, self.decoding.pad_id, chosen)
        self.out.index_copy_(1, self.column, chosen[:, None])
        self.done |= (chosen[:, None] == self.stops).any(1)
        self.column.add_(1)
        self.token.copy_(chosen[:, None])

    def _sampled(self, logits: torch.Tensor) -> torch.Tensor:
        """The token at which the summed probabilities pass the row's uniform number."""
        summed = torch.softmax(logits.float() / self.decoding.temperature, -1).cumsum(-1)
        wanted = self.noise.index_select(1, self.column) * summed[:, -1:]
        return (summed <= wanted).sum(-1).clamp(max=logits.shape[-1] - 1)

    def _prepare(self) -> None:
        """Warm up, then compile and capture as asked."""
        try:
            self._prompt_pass()
            self._step()
        except (torch.OutOfMemoryError, MemoryError, UsageError):
            raise
        except Exception as error:  # positions, caches and masks of another kind
            if any(name in str(error) for name in OF_A_DEVICE):
                raise
            kind = type(self.model).__name__
            raise UsageError(f"a {kind} is not generated from by batched attention: {named_line(error)}") from error
        if self.speedups.compile:
            self._try("compiling", self._compile)
        if self.speedups.capture and self.device.type == "cuda":
            self._try("capturing", self._capture)
        self._ready = True

    def _try(self, what: str, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as error:  # from a compiler or a driver; generation works without it
            self.note(f"generation continues without {what}: {named_line(error)}")
            if what == "compiling":
                _uncompile(self.model)
            self._fill, self._next = self._prompt_pass, self._step

    def _compile(self) -> None:
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 64)
        for attention, slot in _attentions(self.model, self.cache):
            attention.layer_idx = slot  # one graph for all layers: a number would be compiled into each
        for layer in decoder_layers(self.model):
            layer.compile(fullgraph=True, dynamic=False)
        self._prompt_pass()
        self._step()

    def _capture(self) -> None:
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._prompt_pass()
            self._step()
            self._step()
        torch.cuda.current_stream().wait_stream(side)
        fill, step = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(fill):
            self._prompt_pass()
        with torch.cuda.graph(step, pool=fill.pool()):
            self._step()
        self._fill, self._next = fill.replay, step.replay


def decoder_layers(model: nn.Module) -> list[nn.Module]:
    """The repeated layers of a transformers model: its longest list of modules."""
    lists = [list(part) for part in model.modules() if isinstance(part, nn.ModuleList)]
    return max(lists, key=len, default=[])


def _attentions(model: nn.Module, cache: FixedCache) -> list[tuple[Any, Slot]]:
    """The modules that index a cache, with their slots; a module that was given a slot before has kept its number."""
    found = []
    for part in model.modules():
        number = part.__dict__.get("layer_number", part.__dict__.get("layer_idx"))
        if isinstance(number, int):
            part.__dict__["layer_number"] = number
            found.append((part, cache.slots[number]))
    return found


def _refuse_window(model: Any, tokens: int) -> None:
    """Refuse a model whose attention would see fewer tokens than a sequence has. Raises UsageError."""
    config = model.config
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if window is not None and window < tokens:
        raise UsageError(
            f"the model's attention sees {window} tokens (sliding_window), and prompt and completion have {tokens}; "
            "shorten prompts or max_new_tokens"
        )


def _uncompile(model: nn.Module) -> None:
    if not any("layer_number" in part.__dict__ for part in model.modules()):
        return  # never compiled here
    for part in model.modules():
        part._compiled_call_impl = None
        if "layer_number" in part.__dict__:
            part.layer_idx = part.__dict__["layer_number"]


def _added(allowed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask to be added to scores."""
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, -torch.inf)


@contextlib.contextmanager
def plain_kernels() -> Iterator[None]:
    """Attention without cuDNN, which plans again for every shape."""
    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
