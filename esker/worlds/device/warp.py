"""Gymnasium's MuJoCo v5 environments on a GPU: MuJoCo Warp steps the physics, esker computes observations and rewards.

Model and start are Gymnasium's; what differs is the arithmetic: float32 here, float64 there. Where a model asks for the
PGS solver, which MuJoCo Warp lacks, Newton's is used.
"""

from __future__ import annotations

from contextlib import nullcontext
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import torch
import warp

from esker.errors import UsageError
from esker.system.cuda_graph import Graphed
from esker.worlds.device.worlds import Seeds, Starts, Stepped
from esker.worlds.mujoco_v5 import define
from esker.worlds.torch_arrays import TorchArrays

warp.config.log_level = warp.LOG_WARNING  # before it starts
warp.init()
import mujoco_warp  # noqa: E402

CLEARED = ("qacc_warmstart", "ctrl", "cfrc_ext", "qfrc_applied")  # what is cleared between episodes
ROOM = {"Humanoid-v5": 96, "HumanoidStandup-v5": 96}  # constraints of a world, where MuJoCo Warp's 64 are too few
ORDERED = "4.0.0"  # the version whose sums `warp_order` puts in order
DENSE = 32  # degrees of freedom up to which MuJoCo Warp's matrices are dense
LARGEST = 1e10  # mjMAXVAL: MuJoCo resets a world whose state is larger, or no number


class WarpWorlds:
    """The worlds of one GPU. All are stepped; those that begin an episode are set in place, by their rows."""

    def __init__(
        self, name: str, rows: int, device: torch.device, limit: int | None, deterministic: bool = False, **options: Any
    ) -> None:
        self.limit = limit
        self.device = torch.device("cuda", device.index or 0) if device.type == "cuda" else device
        self.definition = define(name, options, TorchArrays(self.device))
        model = self.definition.scene.model
        if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
            model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
        self._place = warp.device_from_torch(self.device)
        self._order = _in_order(model) if deterministic else None
        with warp.ScopedDevice(self._place):
            self._model = mujoco_warp.put_model(model)
            self._model.opt.deterministic = mujoco_warp.DeterminismType.CONSTRAINT if deterministic else 0
            self._data = mujoco_warp.make_data(model, nworld=rows, njmax=ROOM.get(name))
        self.starts = Starts(lambda random: np.concatenate(self.definition.start(random)))
        self._make_arrays(rows)
        self._stream: Any = None
        self._physics = self._captured(self._steps)
        self._forward = self._captured(lambda: mujoco_warp.forward(self._model, self._data))
        self._outcome = Graphed(self._judge, self.device)

    def _make_arrays(self, rows: int) -> None:
        """Torch's views of what Warp computes, and buffers at fixed addresses."""
        names = {*self.definition.reads, *CLEARED, "qpos", "qvel", "time", "xipos"}
        self.arrays = {name: warp.to_torch(getattr(self._data, name)) for name in names}
        self.state = SimpleNamespace(**self.arrays)
        self._start = torch.tensor(self.definition.scene.qpos, dtype=torch.float32, device=self.device)
        self.before = torch.zeros(rows, device=self.device)  # the positions from which velocities are measured
        self.actions = torch.zeros_like(self.arrays["ctrl"])
        self.observations = torch.zeros(rows, self.definition.observation_size, device=self.device)

    def reset(self, rows: torch.Tensor, seeds: Seeds) -> torch.Tensor:
        """Begin episodes with the starts that Gymnasium draws from these seeds."""
        begin = torch.from_numpy(self.starts.take(seeds)).float().to(self.device)
        coordinates = self.arrays["qpos"].shape[1]
        self.arrays["qpos"][rows], self.arrays["qvel"][rows] = begin[:, :coordinates], begin[:, coordinates:]
        for name in (*CLEARED, "time"):
            self.arrays[name][rows] = 0
        self._launch(self._forward)  # of all rows: the others' next step recomputes what this changes
        position = self.definition.position(self.state)
        if position is not None:
            self.before[rows] = position[rows]
        observed = torch.empty_like(self.observations)
        self.definition.observe(self.state, observed)
        return observed[rows]

    def step(self, actions: torch.Tensor) -> Stepped:
        """Step all rows."""
        self.actions.copy_(actions)
        self.arrays["ctrl"].copy_(actions)
        self._launch(self._physics)
        rewards, terminated = self._outcome()
        return Stepped(self.observations, rewards, terminated)

    def _steps(self) -> None:
        for _ in range(self.definition.frame_skip):
            mujoco_warp.step(self._model, self._data)
        if self.definition.contact_forces:
            (self._order.contact_forces if self._order else mujoco_warp.rne_postconstraint)(self._model, self._data)

    def _judge(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Rewards and terminations of the state; observations and positions are kept. A broken world is reset."""
        qpos, qvel = self.arrays["qpos"], self.arrays["qvel"]
        sane = ((qpos.abs() < LARGEST).all(dim=1) & (qvel.abs() < LARGEST).all(dim=1))[:, None]
        qpos.copy_(torch.where(sane, qpos, self._start))
        for array in (qvel, self.arrays["qacc_warmstart"]):
            array.copy_(torch.where(sane, array, 0.0))
        after = self.definition.position(self.state)
        rewards, terminated = self.definition.outcome(self.state, self.actions, self.before, after)
        if after is not None:
            self.before.copy_(after)
        self.definition.observe(self.state, self.observations)
        return rewards.clone(), terminated

    def _captured(self, work: Any) -> Any:
        """Warp's work as one CUDA graph on a GPU; uncaptured elsewhere."""
        if self.device.type != "cuda":
            return work
        stream = warp.stream_from_torch(torch.cuda.current_stream(self.device))
        with self._ordered(), warp.ScopedDevice(self._place), warp.ScopedStream(stream):
            work()  # compiles the kernels
            torch.cuda.synchronize(self.device)
            with warp.ScopedCapture(stream=stream) as capture:
                work()
        self._stream = stream  # graphs are launched on it: it must stay
        return capture.graph

    def _launch(self, work: Any) -> None:
        if self._stream is not None:
            warp.capture_launch(work, stream=self._stream)
            return
        with self._ordered(), warp.ScopedDevice(self._place):
            work()

    def _ordered(self) -> Any:
        return self._order.in_order() if self._order else nullcontext()


def _in_order(model: Any) -> Any:
    """The module that puts sums in order, written for one version of MuJoCo Warp and for Gymnasium's own models."""
    found = version("mujoco-warp")
    if found != ORDERED:
        raise UsageError(
            f"--deterministic is for MuJoCo Warp {ORDERED}, and this is {found}; leave it out, or install that one"
        )
    spatial = (model.wrap_type != mujoco.mjtWrap.mjWRAP_JOINT).any()
    if model.neq or spatial or model.nv > DENSE or model.opt.jacobian == mujoco.mjtJacobian.mjJAC_SPARSE:
        raise UsageError(
            "--deterministic is for Gymnasium's own models; this xml_file has equalities, spatial tendons or sparse matrices"
        )
    from esker.worlds.device import warp_order

    return warp_order
