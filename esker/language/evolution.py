"""`esker.language.LanguageEvolution`: evolve a language model by a score of its completions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from esker.algorithms.observer import Row
from esker.errors import UsageError
from esker.evolution import Evolution
from esker.functions.parameters import Filter
from esker.language.display import Display
from esker.language.evaluation import evaluate
from esker.language.export import save_adapter, save_folder
from esker.language.generation import Decoding, Speedups
from esker.language.models import LanguageModel
from esker.language.prompts import Tokens, chat, stop_ids, tokenize
from esker.language.scoring import Score
from esker.language.stored import Stored, remember, score_path
from esker.language.task import HeldOut, LanguageTask

DEFAULTS: dict[str, Any] = {
    "population": 256,
    "sigma": 0.006,
    "lr": 3.6e-5,  # of plain gradient steps: about σ², which moves the centre by a fraction of σ in a generation
    "optimizer": "sgd",
    "shaping": "normalized",
    "vectors": "keep",
    "final": "last",
}
HELD_OUT_FILE = "held_out.jsonl"


class LanguageEvolution:
    """Members complete prompts, `score(prompt, completion)` rates them, the model moves towards what scored better.

    `held_out` prompts are completed by the unperturbed model every `evaluate_every` generations; a completion counts as
    right when its score is at least `right`. `balance` weighs a prompt the more, the less members differ on it; `focus` is
    the share of a generation's prompts that are chosen among those the unperturbed model gets wrong. `chat` puts
    prompts into the tokenizer's chat template; `template`, a function of the prompt, replaces it. `temperature=0` takes the
    most likely token. All other options are those of `esker.Evolution` with low-rank noise; by default the weights of every
    linear layer but the head move. Wrong requests raise UsageError.
    """

    def __init__(
        self,
        language: LanguageModel,
        prompts: Sequence[str],
        score: Score,
        *,
        held_out: Sequence[str] | None = None,
        prompts_per_generation: int = 32,
        max_new_tokens: int = 32,
        temperature: float = 0.0,
        stop: Sequence[str] = (),
        chat: bool = False,
        template: Callable[[str], str] | None = None,
        right: float = 1.0,
        evaluate_every: int = 10,
        balance: bool = False,
        focus: float = 0.0,
        params: Filter | None = None,
        capture: bool = True,
        compile: bool = False,
        on_held_out: Callable[[HeldOut], None] | None = None,
        on_iteration: Callable[[Row], bool | str | None] | None = None,
        _folder: Path | None = None,
        **options: Any,
    ) -> None:
        _check(prompts_per_generation, max_new_tokens, temperature, evaluate_every, focus)
        self.language = language
        self.quiet = bool(options.get("quiet", False))
        self.display = Display(self.quiet)
        self.held_out: list[HeldOut] = []
        self._stop, self._right, self._on_iteration, self._on_held_out = stop, right, on_iteration, on_held_out
        self._template = template or (_chat_template(language) if chat else None)
        train, held = self._tokens(prompts, held_out, max_new_tokens)
        decoding = Decoding(max_new_tokens, stop_ids(language, stop), language.pad_id, temperature)
        self.task = LanguageTask(
            language=language,
            train=train,
            held_out=held,
            score=score,
            decoding=decoding,
            stop=stop,
            prompts_per_generation=prompts_per_generation,
            seed=int(options.get("seed", 0)),
            right=right,
            evaluate_every=evaluate_every,
            balance=balance,
            focus=focus,
            speedups=Speedups(capture, compile),
            note=self.display.note,
            on_held_out=self._held_out,
        )
        arguments: dict[str, Any] = {
            "reward_batch": self.task,
            "params": linear_weights(language.model) if params is None else params,
            "on_iteration": self._row,
        }
        self._start = {name: value.detach().clone() for name, value in language.model.named_parameters()}
        self.evolution = self._evolution(arguments, options, _folder)
        self.task.seed = self.evolution.config.seed
        self._remember(_folder or self.evolution.config.run_dir)

    @classmethod
    def resume(
        cls, run_dir: str | Path, language: LanguageModel, prompts: Sequence[str], score: Score, **arguments: Any
    ) -> Any:
        """Continue a run folder; the model as it was before the run, prompts, score and their options are given again."""
        return cls(language, prompts, score, _folder=Path(run_dir), **arguments)

    def run(self, generations: int) -> LanguageModel:
        """Run up to this many more generations, or stop at the goal or the time limit; the model holds the result."""
        self.display.begin()
        try:
            self.evolution.run(generations, None)
        finally:
            self.display.end()
        return self.language

    def evaluate(self, prompts: Sequence[str], examples: int = 4) -> HeldOut:
        """The model as it is now on some prompts, by its most likely completions."""
        tokens = tokenize(self.language, prompts, self.task.decoding.max_new_tokens, self._template)
        return evaluate(
            self.language, tokens, self.task.score, self.task.decoding.max_new_tokens, self._stop, self._right, examples
        )

    def save(self, folder: str | Path) -> Path:
        """Write a folder that transformers loads."""
        return save_folder(self.language, Path(folder))

    def save_adapter(self, folder: str | Path, rank: int, tolerance: float = 0.1, base: str = "") -> float:
        """Write the change as a low-rank adapter in peft's format; returns the share of the change that it leaves out."""
        return save_adapter(self.language, self._start, Path(folder), rank, tolerance, base)

    def _tokens(self, prompts: Sequence[str], held_out: Sequence[str] | None, new: int) -> tuple[Tokens, Tokens | None]:
        """Both sets in one length, since a generator has one shape."""
        train = tokenize(self.language, list(prompts), new, self._template)
        if held_out is None:
            return train, None
        held = tokenize(self.language, list(held_out), new, self._template, train.ids.shape[1])
        return tokenize(self.language, list(prompts), new, self._template, held.ids.shape[1]), held

    def _evolution(self, arguments: dict[str, Any], options: dict[str, Any], folder: Path | None) -> Evolution:
        """A new evolution, or that of a run folder."""
        if folder is None:
            chosen = {**DEFAULTS, **options, "quiet": True}
            return Evolution(self.language.model, noise="low-rank", **arguments, **chosen)
        return Evolution.resume(folder, self.language.model, **arguments, **{**options, "quiet": True})

    def _remember(self, folder: Path | str | None) -> None:
        """Keep what `esker eval` needs, where there is a run folder."""
        if folder is None:
            return
        held = [] if self.task.held_out is None else list(self.task.held_out.texts)
        whole = held if self._template is None else [self._template(prompt) for prompt in held]
        new, path = self.task.decoding.max_new_tokens, score_path(self.task.score)
        stored = Stored(self.language.source, path, held, whole, self._template is None, new, list(self._stop), self._right)
        remember(Path(folder), stored, self.task.score)

    def _held_out(self, found: HeldOut) -> None:
        self.held_out.append(found)
        self.display.held_out(found)
        folder = self.evolution.config.run_dir
        if folder is not None:
            with (Path(folder) / HELD_OUT_FILE).open("a") as file:
                file.write(json.dumps(asdict(found)) + "\n")
        if self._on_held_out is not None:
            self._on_held_out(found)

    def _row(self, row: Row) -> bool | str | None:
        self.display.row(row, self.task.tokens)
        return self._on_iteration(row) if self._on_iteration is not None else None


def linear_weights(model: Any) -> list[str]:
    """The weights of every linear layer, transformers' own too, but not of the head nor what is tied to the embedding."""
    apart = {id(part.weight) for part in (model.get_output_embeddings(), model.get_input_embeddings()) if part is not None}
    names = []
    for name, part in model.named_modules():
        linear = type(part) is nn.Linear or type(part).__name__ == "Conv1D"
        if linear and id(part.weight) not in apart and isinstance(part.weight, torch.Tensor):
            names.append(f"{name}.weight")
    if not names:
        raise UsageError("the model has no linear layers besides its head; name the parameters to evolve with params=")
    return names


def _chat_template(language: LanguageModel) -> Callable[[str], str]:
    chat(language, "?")  # a tokenizer without a template is refused here
    return partial(chat, language)


def _check(prompts: int, new_tokens: int, temperature: float, every: int, focus: float) -> None:
    for name, value in (("prompts_per_generation", prompts), ("max_new_tokens", new_tokens), ("evaluate_every", every)):
        if not isinstance(value, int) or value < 1:
            raise UsageError(f"{name} is {value!r}; expected a whole number of at least 1")
    if not temperature >= 0:
        raise UsageError(f"temperature is {temperature!r}; expected a number of at least 0")
    if not 0 <= focus <= 1:
        raise UsageError(f"focus is {focus!r}; expected a share between 0 and 1")
