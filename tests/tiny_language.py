"""A random language model of a few thousand parameters with a tokenizer of characters, for tests on a CPU."""

from __future__ import annotations

import torch

from esker.language.models import LanguageModel, load

CHARACTERS = "0123456789+-=*()abcdefghij \n"


def tiny(seed: int = 0, layers: int = 2, context: int = 64) -> LanguageModel:
    """Two layers of 32 units, four query heads on two key-value heads; tied embeddings."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {text: number for number, text in enumerate(["<pad>", "<end>", "<unk>", *CHARACTERS])}
    characters = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    characters.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    characters.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=characters, unk_token="<unk>", eos_token="<end>", pad_token="<pad>")
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=0,
    )
    return load(LlamaForCausalLM(config), tokenizer)


def letters(prompt: str, completion: str) -> float:
    """A score that a random model can be moved by: letters are good."""
    return sum(character in "abcdefghij" for character in completion) / 4
