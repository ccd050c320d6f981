"""Low-rank evolution of a language model: its speed, what it learns, and a policy-gradient baseline.

    python benchmarks/language.py speed --out speed.json                       # against inference, and one by one
    python benchmarks/language.py memory --out memory.json                     # of members and of int8 weights
    python benchmarks/language.py learn --task addition --seeds 0 1 2 --seconds 120 --out addition.json
    python benchmarks/language.py learn --task addition --method grpo --seeds 0 1 2 --seconds 120 --out grpo.json
    python benchmarks/language.py sweep --task addition --seconds 40 --out sweep.json      # settings of both methods
    python benchmarks/language.py cpu                                          # an MLP on two cores: torch against NumPy

The model is the packaged SmolLM2-135M-Instruct, or `--model` (a folder or a GGUF file; `tiny`: a random one, to try the
script). Results are written after every measurement, so that a command that is stopped keeps what it has. Time counts
from the first generation, compiling and capturing included.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import language_grpo
import language_speed
import language_tasks

from esker.language import HeldOut, LanguageEvolution, LanguageModel, load, packaged, text_loss
from esker.language.generation import Decoding, Speedups
from esker.language.prompts import stop_ids, tokenize

ES = {"population": 256, "sigma": 0.006, "lr": 7.2e-5, "prompts_per_generation": 32, "rank": 1}
GRPO = {"lr": 2e-5, "group": 16, "prompts_per_step": 32}
SWEEP_ES = [{"sigma": sigma, "lr": c * sigma**2} for sigma, c in itertools.product((0.006, 0.012), (1.0, 3.0))] + [
    {"sigma": 0.003, "lr": 3 * 0.003**2},
    {"sigma": 0.012, "lr": 8 * 0.012**2},
]
SWEEP_GRPO = [{"lr": lr} for lr in (1e-5, 3e-5, 1e-4)]


class Results:
    """A list of measurements on disk, written whole after each."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self.path, self.about, self.rows = path, about, []  # type: ignore[var-annotated]

    def add(self, row: dict[str, Any]) -> None:
        """Store one and print what matters of it."""
        self.rows.append(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({**self.about, "results": self.rows}, indent=1))
        print({key: value for key, value in row.items() if key not in ("curve", "before", "after", "ratios")}, flush=True)


def main() -> None:
    """Run one part of the benchmark."""
    options = arguments()
    device = torch.device(options.device)
    about = {"command": " ".join(sys.argv), "device": _name(device), "torch": torch.__version__, "model": str(options.model)}
    if options.part == "cpu":
        from language_cpu import measure

        Results(options.out, about).add(measure())
        return
    begun = time.perf_counter()
    language = model_of(options.model)
    language.model.to(device)
    print(f"model loaded in {time.perf_counter() - begun:.1f} s", flush=True)
    results = Results(options.out, about)
    {"speed": speed, "memory": memory, "learn": learn, "sweep": sweep}[options.part](options, language, device, results)


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("speed", "memory", "learn", "sweep", "cpu"))
    parser.add_argument("--model", default="packaged")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=Path("language.json"))
    parser.add_argument("--seconds", type=float, default=120.0, help="of each run; of the whole part for speed")
    parser.add_argument("--task", default="addition", choices=("addition", "addition3", "countdown", "json"))
    parser.add_argument("--method", default="es", choices=("es", "grpo"))
    parser.add_argument("--methods", nargs="+", default=["es", "grpo"], help="of a sweep")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument(
        "--until", type=float, default=1.1, help="stop a run when validation accuracy has reached this twice"
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=NUMBER", help="settings, as sigma=0.01 population=512")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--members", type=int, default=256)
    parser.add_argument("--prompts", type=int, default=32)
    parser.add_argument("--shapes", nargs="+", default=["16x32", "16x5"], help="prompt tokens x new tokens, for speed")
    parser.add_argument("--rounds", type=int, default=5, help="of inference and population in turns, for speed")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1])
    parser.add_argument("--modes", nargs="+", default=["captured", "compiled and captured", "eager"])
    return parser.parse_args()


def model_of(name: str) -> LanguageModel:
    """The packaged model, one from a path, or a random one."""
    if name == "tiny":
        from tiny_language import tiny

        return tiny(context=256)
    return load(packaged() if name == "packaged" else name)


def speed(options: argparse.Namespace, language: LanguageModel, device: torch.device, results: Results) -> None:
    """Population against inference in every mode, then one member at a time."""
    begun, dtype = time.perf_counter(), getattr(torch, options.dtype)
    shapes = [tuple(map(int, text.split("x"))) for text in options.shapes]
    jobs: list[Callable[[], dict[str, Any]]] = []
    for mode, (length, new), rank in itertools.product(options.modes, shapes, options.ranks):
        shape = language_speed.Shape(options.members, options.prompts, length, new, rank, dtype)
        jobs.append(lambda shape=shape, mode=mode: language_speed.compare(language, shape, device, mode, options.rounds))
    first = language_speed.Shape(options.members, options.prompts, *shapes[0], 1, dtype)
    jobs.append(lambda: language_speed.one_by_one(language, first, device, "captured"))
    for job in jobs:
        if time.perf_counter() - begun < options.seconds:
            _attempt(job, results)


def memory(options: argparse.Namespace, language: LanguageModel, device: torch.device, results: Results) -> None:
    """Peaks at equal rows for two numbers of members, and the cost of int8 weights."""
    dtype, (length, new) = getattr(torch, options.dtype), map(int, options.shapes[-1].split("x"))
    few = language_speed.Shape(options.members, options.prompts, length, new, 1, dtype)
    many = language_speed.Shape(options.members * 4, max(1, options.prompts // 4), length, new, 1, dtype)
    for shape in (few, many):
        _attempt(lambda shape=shape: language_speed.memory(language, shape, device, "captured"), results)
    _attempt(lambda: language_speed.int8(language, few, device, "captured"), results)


def learn(options: argparse.Namespace, language: LanguageModel, device: torch.device, results: Results) -> None:
    """One method on one task, seed by seed."""
    given = dict(part.split("=") for part in options.set)
    settings = {key: float(value) if "." in value or "e" in value else int(value) for key, value in given.items()}
    start = _start(language)
    for seed in options.seeds:
        _restore(language, start)
        _attempt(lambda seed=seed: one_run(options, language, device, options.method, seed, settings), results)
    right = [row["accuracy"] for row in results.rows if "accuracy" in row]
    if right:
        print(
            f"{options.method} on {options.task}: median {statistics.median(right):.1%}, worst {min(right):.1%}, all {right}"
        )


def sweep(options: argparse.Namespace, language: LanguageModel, device: torch.device, results: Results) -> None:
    """Short runs of several settings, to choose from."""
    start = _start(language)
    jobs = [(m, s) for m, choices in (("es", SWEEP_ES), ("grpo", SWEEP_GRPO)) if m in options.methods for s in choices]
    for method, settings in jobs:
        _restore(language, start)
        _attempt(lambda m=method, s=settings: one_run(options, language, device, m, 100, s), results)


def one_run(
    options: argparse.Namespace, language: LanguageModel, device: torch.device, method: str, seed: int, given: dict[str, Any]
) -> dict[str, Any]:
    """A run from the model's start: its curve, examples before and after, and the loss on plain text before and after."""
    task = language_tasks.make(options.task)
    texts, curve = language_tasks.plain_text(), []  # type: ignore[var-annotated]
    before = text_loss(language, texts)

    def seen(found: HeldOut, seconds: float) -> bool:
        curve.append([round(seconds, 2), found.generation, found.accuracy, found.score])
        shown.append(found.examples)
        reached = sum(point[2] >= options.until for point in curve[-2:]) == 2
        print(
            f"  {method} seed {seed}: {seconds:.0f} s, {found.generation}: {found.accuracy:.1%} {found.score:.3f}",
            flush=True,
        )
        return reached

    shown: list[Any] = []
    run = evolve if method == "es" else policy_gradient
    settings = {**(ES if method == "es" else GRPO), **given}
    row = run(options, language, device, task, seed, settings, seen)
    last = evaluate_final(language, task)
    return {
        "task": task.name,
        "method": method,
        "seed": seed,
        "settings": settings,
        "accuracy": last.accuracy,
        "score": last.score,
        "first_accuracy": curve[0][2] if curve else None,
        "text_loss": [before, text_loss(language, texts)],
        **row,
        "curve": curve,
        "before": shown[0] if shown else None,
        "after": last.examples,
    }


def evolve(
    options: argparse.Namespace,
    language: LanguageModel,
    device: torch.device,
    task: Any,
    seed: int,
    settings: Any,
    seen: Any,
) -> dict[str, Any]:
    """Low-rank evolution."""
    state = {"stop": False}
    begun = time.perf_counter()

    def held(found: HeldOut) -> None:
        state["stop"] = seen(found, time.perf_counter() - begun)

    evolution = LanguageEvolution(
        language,
        task.train,
        task.score,
        held_out=task.validation,
        template=task.template,
        max_new_tokens=task.max_new_tokens,
        seed=seed,
        device=str(device),
        dtype=options.dtype,
        compile=options.compile,
        quiet=True,
        on_held_out=held,
        evaluate_every=20,
        on_iteration=lambda row: state["stop"] or time.perf_counter() - begun > options.seconds,
        **settings,
    )
    notes: list[str] = []
    evolution.task.note = notes.append
    evolution.run(1_000_000)
    seconds = time.perf_counter() - begun
    spent = {f"seconds_{name}": value for name, value in evolution.task.seconds.items()}
    speed = evolution.task.tokens / seconds
    notes += evolution.evolution.notices
    return {
        "generations": evolution.evolution.iteration,
        "seconds": seconds,
        "tokens_per_second": speed,
        **spent,
        "notes": notes,
    }


def policy_gradient(
    options: argparse.Namespace,
    language: LanguageModel,
    device: torch.device,
    task: Any,
    seed: int,
    settings: Any,
    seen: Any,
) -> dict[str, Any]:
    """GRPO."""
    train = tokenize(language, task.train, task.max_new_tokens, task.template)
    held = tokenize(language, task.validation, task.max_new_tokens, task.template)
    decoding = Decoding(task.max_new_tokens, stop_ids(language, ()), language.pad_id, 1.0)
    return language_grpo.train(
        language,
        train,
        held,
        task.score,
        decoding,
        seen,
        seed=seed,
        seconds=options.seconds,
        dtype=getattr(torch, options.dtype),
        speedups=Speedups(compile=options.compile),
        **settings,
    )


def evaluate_final(language: LanguageModel, task: Any) -> HeldOut:
    """The float32 model on every held-out prompt."""
    from esker.language import evaluate

    tokens = tokenize(language, task.held_out, task.max_new_tokens, task.template)
    return evaluate(language, tokens, task.score, task.max_new_tokens, examples=12)


def _attempt(job: Callable[[], dict[str, Any]], results: Results) -> None:
    """A measurement that fails is a result too: the next one goes on."""
    try:
        results.add(job())
    except Exception as error:
        traceback.print_exc()
        results.add({"error": f"{type(error).__name__}: {error}"})
    gc.collect()  # generators and their graphs
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _start(language: LanguageModel) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in language.model.named_parameters()}


def _restore(language: LanguageModel, start: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in language.model.named_parameters():
            tensor.copy_(start[name])


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main()
