"""Evolve language models: load, evolve by a score of completions, evaluate, export. Needs the extra `esker[language]`."""

from esker.language.evaluation import evaluate, text_loss
from esker.language.evolution import LanguageEvolution
from esker.language.models import LanguageModel, load, packaged
from esker.language.task import HeldOut

__all__ = ["HeldOut", "LanguageEvolution", "LanguageModel", "evaluate", "load", "packaged", "text_loss"]
