"""`esker.language.LanguageEvolution`: evolve a language model by a score of its completions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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
from esker.language.arguments import check_choices, count_of, texts_of
from esker.language.display import Display, Notices
from esker.language.evaluation import evaluate
from esker.language.export import save_adapter, save_folder
from esker.language.generation import Decoding, Speedups
from esker.language.models import LanguageModel
from esker.language.prompts import Tokens, chat, stop_ids, tokenize
from esker.language.scoring import Score
from esker.language.stored import Stored, digest, recalled, refuse_changes, remember, score_path
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
        prompts: Iterable[str],
        score: Score,
        *,
        held_out: Iterable[str] | None = None,
        prompts_per_generation: int = 32,
        max_new_tokens: int = 32,
        temperature: float = 0.0,
        stop: Iterable[str] = (),
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
        max_new_tokens = count_of("max_new_tokens", max_new_tokens)
        check_choices(temperature, focus, right, options)
        stop = texts_of("stop", stop)
        former, damage = (None, []) if _folder is None else recalled(_folder)
        if held_out is None and former is not None:
            held_out = former.prompts or None
        self.language = language
        self.display = Display(bool(options.get("quiet", False)))
        self.held_out: list[HeldOut] = []
        self._stop, self._right, self._on_iteration, self._on_held_out = stop, float(right), on_iteration, on_held_out
        self._template = template or (_chat_template(language) if chat else None)
        train, held = self._tokens(prompts, held_out, max_new_tokens)
        decoding = Decoding(max_new_tokens, stop_ids(language, stop), language.pad_id, float(temperature))
        self.task = LanguageTask(
            language=language,
            train=train,
            held_out=held,
            score=score,
            decoding=decoding,
            stop=stop,
            prompts_per_generation=count_of("prompts_per_generation", prompts_per_generation),
            seed=options.get("seed", 0),
            right=self._right,
            evaluate_every=count_of("evaluate_every", evaluate_every),
            balance=bool(balance),
            focus=float(focus),
            speedups=Speedups(capture, compile),
            note=self.display.note,
            on_held_out=self._held_out,
        )
        refuse_changes(former, stored := self._stored())
        self._start = {name: value.detach().clone() for name, value in language.model.named_parameters()}
        self.evolution = self._evolution(linear_weights(language.model) if params is None else params, options, _folder)
        self.task.seed = self.evolution.config.seed
        self._remember(_folder or self.evolution.config.run_dir, stored, damage)

    @classmethod
    def resume(
        cls, run_dir: str | Path, language: LanguageModel, prompts: Iterable[str], score: Score, **arguments: Any
    ) -> Any:
        """Continue a run folder; the model as it was before the run, prompts, score and their options are given again.

        A model, prompts or options of decoding that are not those of the run raise UsageError.
        """
        return cls(language, prompts, score, _folder=Path(run_dir), **arguments)

    def run(self, generations: int) -> LanguageModel:
        """Run up to this many more generations, or stop at the goal or the time limit; the model holds the result."""
        self.display.begin()
        try:
            self.evolution.run(generations, None)
        finally:
            self.display.end()
        return self.language

    def evaluate(self, prompts: Iterable[str], examples: int = 4) -> HeldOut:
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

    def _tokens(self, prompts: Iterable[str], held_out: Iterable[str] | None, new: int) -> tuple[Tokens, Tokens | None]:
        """Both sets in one length, since a generator has one shape."""
        train = tokenize(self.language, prompts, new, self._template)
        if held_out is None:
            return train, None
        held = tokenize(self.language, held_out, new, self._template, train.ids.shape[1], "held_out")
        return tokenize(self.language, train.texts, new, self._template, held.ids.shape[1]), held

    def _evolution(self, params: Filter, options: dict[str, Any], folder: Path | None) -> Evolution:
        """A new evolution, or that of a run folder. It prints nothing itself: rows and notices go to the display."""
        arguments: dict[str, Any] = {"reward_batch": self.task, "params": params, "on_iteration": self._row}
        shown = {"observer": Notices(self.display.note)}
        if folder is None:
            chosen = {**DEFAULTS, **shown, **options, "quiet": True}
            return Evolution(self.language.model, noise="low-rank", **arguments, **chosen)
        return Evolution.resume(folder, self.language.model, **arguments, **{**shown, **options, "quiet": True})

    def _stored(self) -> Stored:
        """What `esker eval` needs, and what a resumed run must have in common with its beginning."""
        task, decoding = self.task, self.task.decoding
        held = [] if task.held_out is None else list(task.held_out.texts)
        whole = held if self._template is None else [self._template(prompt) for prompt in held]
        return Stored(
            model=self.language.source,
            score=score_path(task.score),
            prompts=held,
            whole=whole,
            special=self._template is None,
            max_new_tokens=decoding.max_new_tokens,
            stop=list(self._stop),
            right=self._right,
            decided={
                "prompts": digest(task.train),
                "max_new_tokens": decoding.max_new_tokens,
                "stop": list(self._stop),
                "stop_ids": list(decoding.stop_ids),
                "pad_id": decoding.pad_id,
                "temperature": decoding.temperature,
                "prompts_per_generation": task.prompts_per_generation,
                "balance": task.balance,
                "focus": task.focus,
                "right": self._right if task.focus else None,
            },
        )

    def _remember(self, folder: Path | str | None, stored: Stored, damage: list[str]) -> None:
        """Keep what `esker eval` needs, where there is a run folder; a damaged file is reported and kept aside."""
        if folder is not None:
            remember(Path(folder), stored, self.task.score, aside=bool(damage))
        for text in damage:
            self.evolution.note(text)

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
