"""Gymnasium's classic control environments as formulas over arrays: CartPole, Pendulum, MountainCar and Acrobot.

A state is a sequence of arrays, one for each variable, with one world an entry: NumPy's give each world the bits of
Gymnasium's own class, torch tensors the same to rounding.
"""

from __future__ import annotations

from typing import Any

from esker.worlds.classic.acrobot import Acrobot
from esker.worlds.classic.cart_pole import CartPole
from esker.worlds.classic.definition import ClassicDefinition
from esker.worlds.classic.mountain_car import MountainCar
from esker.worlds.classic.pendulum import Pendulum

CLASSIC: dict[str, Any] = {
    "Acrobot-v1": Acrobot,
    "CartPole-v1": CartPole,
    "MountainCar-v0": MountainCar,
    "Pendulum-v1": Pendulum,
}

__all__ = ["CLASSIC", "ClassicDefinition"]
