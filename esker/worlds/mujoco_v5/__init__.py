"""Gymnasium's eleven MuJoCo v5 environments as formulas over arrays: observation, reward, termination and start.

They know no simulator. What steps the physics hands them arrays under MuJoCo's names, one world a row: NumPy's for the
`mujoco` package (bit for bit what Gymnasium's classes return), torch tensors for a simulator on a GPU.
"""

from __future__ import annotations

from typing import Any

from esker.worlds.arrays import Arrays, NumpyArrays
from esker.worlds.mujoco_v5.ant import Ant
from esker.worlds.mujoco_v5.arms import Pusher, Reacher
from esker.worlds.mujoco_v5.definition import Definition, Scene
from esker.worlds.mujoco_v5.humanoids import Humanoid, HumanoidStandup
from esker.worlds.mujoco_v5.pendulums import InvertedDoublePendulum, InvertedPendulum
from esker.worlds.mujoco_v5.runners import HalfCheetah, Hopper, Swimmer, Walker2d

DEFINITIONS: dict[str, Any] = {
    f"{definition.__name__}-v5": definition
    for definition in (
        Ant,
        HalfCheetah,
        Hopper,
        Humanoid,
        HumanoidStandup,
        InvertedDoublePendulum,
        InvertedPendulum,
        Pusher,
        Reacher,
        Swimmer,
        Walker2d,
    )
}

__all__ = ["DEFINITIONS", "Arrays", "Definition", "NumpyArrays", "Scene", "define"]


def define(name: str, options: dict[str, Any], arrays: Arrays | None = None) -> Definition:
    """The definition of an environment with its keyword arguments; loads its model."""
    import mujoco
    from gymnasium.envs.mujoco.mujoco_env import expand_model_path

    chosen = DEFINITIONS[name]
    model = mujoco.MjModel.from_xml_path(expand_model_path(options.get("xml_file", chosen.xml_file)))
    scene = Scene.of(model, options.get("frame_skip", chosen.frame_skip), arrays or NumpyArrays())
    definition: Definition = chosen(scene, **options)
    return definition
