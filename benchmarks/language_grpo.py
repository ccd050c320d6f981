"""GRPO in plain torch: the policy-gradient baseline of the language benchmark.

Completions are sampled in groups for each prompt, a group's scores are normalised, and one AdamW step is made on
-mean(advantage · log-probability) over completion tokens: on-policy, so that the ratio is 1 and clipping has nothing to do.
Weights are float32, sampling and the forward pass bfloat16 on a GPU. Sampling uses the generator that evolution uses.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from esker.functions.lowrank.batches import evaluation_copy
from esker.language.generation import Decoding, Generator, Speedups
from esker.language.models import LanguageModel
from esker.language.prompts import Tokens
from esker.language.scoring import Score, score_rows
from esker.language.task import HeldOut, complete, held_out

Seen = Callable[[HeldOut, float], bool]  # an evaluation, and the seconds so far; True to stop


def train(
    language: LanguageModel,
    prompts: Tokens,
    held: Tokens,
    score: Score,
    decoding: Decoding,
    seen: Seen,
    *,
    seed: int,
    seconds: float,
    lr: float,
    group: int = 16,
    prompts_per_step: int = 32,
    evaluate_every: int = 20,
    dtype: torch.dtype = torch.bfloat16,
    speedups: Speedups | None = None,
) -> dict[str, Any]:
    """Train the model in place for some seconds; the setup of the generators counts."""
    device, begun = next(language.model.parameters()).device, time.perf_counter()
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    sampler = evaluation_copy(language.model, device, dtype)
    make = Generator(sampler, group * prompts_per_step, prompts.ids.shape[1], decoding, speedups)
    greedy_decoding = Decoding(decoding.max_new_tokens, decoding.stop_ids, decoding.pad_id)
    greedy = Generator(sampler, min(512, len(held)), held.ids.shape[1], greedy_decoding, speedups)
    optimizer = torch.optim.AdamW(language.model.parameters(), lr=lr, weight_decay=0.0)
    on_device, step = prompts.to(device), 0
    while time.perf_counter() - begun < seconds:
        with torch.no_grad():
            torch._foreach_copy_(list(sampler.parameters()), list(language.model.parameters()))
        if step % evaluate_every == 0:
            rows = complete(greedy, held).cpu()
            scored = score_rows(language, held.texts, torch.arange(len(held)), rows, score, ())
            if seen(held_out(step, scored, held, 1.0), time.perf_counter() - begun):
                break
        chosen = torch.from_numpy(rng.choice(len(prompts), prompts_per_step, replace=False))
        owners = chosen.repeat_interleave(group).to(device)
        rows = make(on_device.ids[owners], on_device.valid[owners], torch.rand(make.noise.shape, device=device)).clone()
        scores = score_rows(language, prompts.texts, owners, rows, score, ()).by_row.reshape(-1, group)
        advantage = (scores - scores.mean(1, keepdims=True)) / (scores.std(1, keepdims=True) + 1e-4)
        weights = torch.from_numpy(advantage.reshape(-1)).float().to(device)
        _step(language, on_device.ids[owners], on_device.valid[owners], rows, weights, decoding, optimizer, dtype)
        step += 1
    return {"steps": step, "seconds": time.perf_counter() - begun}


def _step(
    language: LanguageModel,
    ids: torch.Tensor,
    valid: torch.Tensor,
    rows: torch.Tensor,
    advantage: torch.Tensor,
    decoding: Decoding,
    optimizer: torch.optim.Optimizer,
    dtype: torch.dtype,
) -> None:
    """One gradient step on the tokens that were sampled, the stop included and the padding after it not."""
    stops = torch.tensor(decoding.stop_ids, device=rows.device)
    ended = (rows[..., None] == stops).any(-1).cumsum(1)
    taken = torch.cat([torch.ones_like(ended[:, :1]), (ended[:, :-1] == 0).long()], 1).bool()
    whole = torch.cat([ids, rows], 1)
    mask = torch.cat([valid, taken], 1)
    positions = (mask.long().cumsum(1) - 1).clamp(min=0)
    with torch.autocast(rows.device.type, dtype, enabled=dtype != torch.float32):
        out = language.model(
            input_ids=whole,
            attention_mask=mask.long(),
            position_ids=positions,
            logits_to_keep=rows.shape[1] + 1,
            use_cache=False,
        )
    logits = out.logits[:, :-1].float() / decoding.temperature
    chosen = torch.log_softmax(logits, -1).gather(2, rows[..., None])[..., 0]
    loss = -(advantage[:, None] * chosen * taken).sum() / taken.sum()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(language.model.parameters(), 1.0)
    optimizer.step()
