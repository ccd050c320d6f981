"""What a run folder keeps of a language task, and `esker eval` for it: held-out prompts, the model's path, the score's."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from esker.algorithms import registry
from esker.errors import Damage, UsageError
from esker.functions.algorithm import start
from esker.functions.problem import Problem, still
from esker.language.generation import Decoding, Generator, Speedups
from esker.language.models import LanguageModel, load
from esker.language.prompts import Tokens, encode, stop_ids
from esker.language.scoring import score_rows
from esker.language.task import HeldOut, complete, held_out
from esker.runs.evaluation import Evaluation
from esker.runs.files import keep_aside, write_whole
from esker.runs.folder import RunFolder
from esker.runs.pointers import wanted
from esker.runs.recovery import rewind
from esker.runs.trust import Trust, check_trust, record_run
from esker.system.imports import import_callable, path_of

FILE = "language.json"
ROWS = 64  # sequences at a time
IN_PYTHON = "evaluate it in Python: esker.language.LanguageEvolution.resume(…).evaluate(prompts)"


@dataclass(frozen=True)
class Stored:
    """What an evaluation needs besides the parameters."""

    model: str | None  # where `load` finds it; None: an object
    score: str | None  # module:name; None: only its process has it
    prompts: list[str]  # the held-out ones
    whole: list[str]  # the same through the template
    special: bool  # whether the tokenizer adds its special tokens
    max_new_tokens: int
    stop: list[str]
    right: float
    decided: dict[str, Any] = field(default_factory=dict)  # what a resumed run must have in common; old folders: nothing


@dataclass(frozen=True)
class Result:
    """An evaluation as `esker eval` shows it; every prompt counts as an episode, its tokens as the length."""

    evaluation: Evaluation
    found: HeldOut
    notices: list[str]

    def summary(self) -> dict[str, Any]:
        """The numbers of `esker eval --json`."""
        return {"accuracy": self.found.accuracy, **self.evaluation.summary()}


def remember(folder: Path, stored: Stored, score: Any, aside: bool = False) -> None:
    """Write it into a run folder, the former file kept `aside`; the score's module counts as code of a run made here."""
    if aside:
        keep_aside(folder / FILE)
    write_whole(folder / FILE, json.dumps(asdict(stored), indent=1))
    if stored.score is not None:
        file = getattr(sys.modules.get(score.__module__), "__file__", None)
        roots = [str(Path(file).resolve().parent)] if file else []
        record_run(str(RunFolder.open(folder).about()["run"]), {"score": stored.score}, roots)


def recalled(folder: Path) -> tuple[Stored | None, list[str]]:
    """What a run folder has kept; nothing where there is no file, or a damaged one, which is reported."""
    if not (folder / FILE).exists():
        return None, []
    try:
        return _read(folder / FILE), []
    except UsageError as error:
        return None, [Damage(f"{error}; continuing with the prompts, held_out and options given now, unchecked")]


def digest(tokens: Tokens) -> str:
    """A digest of prompts as the model reads them."""
    return hashlib.sha256(tokens.ids.cpu().numpy().tobytes() + tokens.valid.cpu().numpy().tobytes()).hexdigest()[:16]


def refuse_changes(former: Stored | None, now: Stored) -> None:
    """Refuse to continue with prompts or options that are not those of the run. Raises UsageError."""
    for name, value in former.decided.items() if former else ():
        given = now.decided.get(name)
        if given == value:
            continue
        if name == "prompts":
            raise UsageError("prompts, template or held_out are not those of the run; give the same ones, in the same order")
        raise UsageError(f"{name} is {given!r}, and the run has {value!r}; a resumed run cannot change it")


def score_path(score: Any) -> str | None:
    """The import path of a score; that of a script's function is the path that imports the script as a module."""
    main = sys.modules.get("__main__")
    file, name = getattr(main, "__file__", None), getattr(score, "__qualname__", "")
    if getattr(score, "__module__", None) == "__main__" and file and getattr(main, name, None) is score:
        return f"{Path(file).stem}:{name}"
    return path_of(score)


def evaluate_run(path: str | Path, prompts: int = 100, checkpoint: str | int = "best", trust: Trust = False) -> Result:
    """A run's model on its held-out prompts, greedily completed. What cannot be found again raises UsageError."""
    folder = RunFolder.open(Path(path))
    stored = _read(folder.path / FILE)
    folder.check_trust(trust, frozenset(folder.values()))
    check_trust(folder.path, {"score": stored.score}, folder.about(), trust)
    if stored.model is None or stored.score is None:
        what = "score" if stored.score is None else "model"
        raise UsageError(f"the {what} of {str(path)!r} is an object that only Python has; {IN_PYTHON}")
    if prompts < 1 or not stored.prompts:
        raise UsageError(f"episodes is {prompts}; expected at least 1" if prompts < 1 else "the run has no held-out prompts")
    score, language = import_callable(stored.score, "score"), load(stored.model)
    generation, notices = _restore(folder, checkpoint, language)
    language.to("cuda" if torch.cuda.is_available() else "cpu")
    tokens = encode(language, stored.prompts[:prompts], stored.whole[:prompts], stored.max_new_tokens, stored.special)
    rows = _complete(language, tokens, stored)
    scored = score_rows(language, tokens.texts, torch.arange(len(tokens)), rows, score, stored.stop)
    ends = torch.tensor(stop_ids(language, stored.stop))
    lengths = (~torch.isin(rows, ends)).cumprod(1).sum(1).tolist()
    evaluation = Evaluation(scored.by_row.tolist(), lengths, generation)
    return Result(evaluation, held_out(generation, scored, tokens, stored.right), notices)


def _complete(language: LanguageModel, tokens: Tokens, stored: Stored) -> torch.Tensor:
    decoding = Decoding(stored.max_new_tokens, stop_ids(language, stored.stop), language.pad_id)
    rows = min(ROWS, len(tokens))
    return complete(Generator(language.model, rows, tokens.ids.shape[1], decoding, Speedups(capture=False)), tokens).cpu()


def _restore(folder: RunFolder, checkpoint: str | int, language: LanguageModel) -> tuple[int, list[str]]:
    """Write a checkpoint's parameters into the model; a generation that was not stored is replayed from the facts."""
    config, about = folder.config(registry.options_of), folder.about()
    names = [str(name) for name, _ in about["parameters"]]
    problem = Problem(language.model, reward_batch=_never, params=names)
    if checkpoint == "best" and config.final == "last":  # no best centre is kept
        checkpoint = "latest"
    generation, notices = wanted(folder, checkpoint, folder.committed())
    snapshot, _ = folder.newest(generation)
    flat = problem.flat(config)
    if flat.describe() != about["parameters"] or still(flat) != about["still"]:
        raise UsageError("the model is not the one that the run began with: other layers, or other frozen parameters")
    if snapshot is None or snapshot.generation != generation:
        state = start(config, problem, about, new=False)
        rewind(folder, state, generation)
        snapshot = state.snapshot()
    flat.write(snapshot.arrays["center"])
    return generation, notices


def _never(members: Any) -> Any:
    raise AssertionError("an evaluation has no members")


def _read(file: Path) -> Stored:
    try:
        return Stored(**json.loads(file.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error}") from None
