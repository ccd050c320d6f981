"""The names of AES's update rules; torch-free, so that a command line can offer them."""

from __future__ import annotations

from typing import Literal

MeanUpdate = Literal["fixed-linear", "fixed-sigmoid", "baseline-absolute", "baseline-relative"]
VarUpdate = Literal["fixed", "adaptive"]
RULES_THAT_SCALE = ("fixed-linear", "fixed-sigmoid", "baseline-relative")  # their parameter must be above zero
