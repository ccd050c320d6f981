"""The file formats of an exported policy: how each is written, read back and run."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from esker.errors import UsageError
from esker.policies.policy import Policy
from esker.tools.torch_policies.networks import tensors
from esker.tools.torch_policies.policy import TorchPolicy

Step = Callable[..., list[np.ndarray]]  # observation and state as arrays -> action and next state
FILES = {
    "state-dict": "policy_state_dict.pt",
    "torchscript": "policy_torchscript.pt",
    "torch-export": "policy.pt2",
    "onnx": "policy.onnx",
}


def write(form: str, policy: Policy, path: Path) -> None:
    """Write a policy in one form."""
    module = TorchPolicy(policy)
    example, buffer = _example(policy, module), io.BytesIO()  # torch raises no OSError where a disk is full
    with _quiet():
        if form == "onnx":
            _write_onnx(module, example, path)
            return
        if form == "state-dict":
            torch.save(state_dict(policy), buffer)
        elif form == "torchscript":
            torch.jit.save(torch.jit.trace(module, example, check_trace=False), buffer)  # type: ignore[no-untyped-call]
        else:
            torch.export.save(torch.export.export(module, example, dynamic_shapes=_dynamic(module)), buffer)
    path.write_bytes(buffer.getvalue())


def read(form: str, policy: Policy, path: Path) -> Step:
    """Load a written file as a function that acts. From the policy it takes only what a state dict cannot hold."""
    if form == "onnx":
        return _onnx_step(path)
    with _quiet():
        if form == "state-dict":
            loaded = torch.load(path, weights_only=True)
            flat = torch.cat([loaded[name].reshape(-1) for name in policy.network.shapes]).numpy()
            module: Any = TorchPolicy(policy, flat)
        elif form == "torchscript":
            module = torch.jit.load(str(path))  # type: ignore[no-untyped-call]
        else:
            module = torch.export.load(path).module()

    def step(*inputs: np.ndarray) -> list[np.ndarray]:
        with torch.no_grad():
            outputs = module(*(torch.from_numpy(part) for part in inputs))
        return [part.numpy() for part in (outputs if isinstance(outputs, tuple) else (outputs,))]

    return step


def state_dict(policy: Policy) -> dict[str, torch.Tensor]:
    """The network's parameters under their own names, and the normaliser's numbers."""
    named = tensors(policy.network, policy.parameters)
    if policy.normalizer is not None:
        named["normalizer.mean"] = torch.from_numpy(policy.normalizer.mean.copy())
        named["normalizer.inverse_std"] = torch.from_numpy(policy.normalizer.inverse_std.copy())
    return named


def require(form: str) -> None:
    """Check that the packages a format needs are installed. Raises UsageError."""
    if form == "onnx":
        try:
            import onnx  # noqa: F401
            import onnxruntime  # type: ignore[import-untyped]  # noqa: F401
            import onnxscript  # noqa: F401
        except ImportError as error:
            raise UsageError(f"format onnx needs {error.name}; pip install 'esker[export]', or leave it out") from error


def _example(policy: Policy, module: TorchPolicy) -> tuple[torch.Tensor, ...]:
    images = len(policy.network.input_shape) > 1
    shape = (2 if module.network.batched else 1, *policy.network.input_shape)
    return torch.zeros(shape, dtype=torch.uint8 if images else torch.float32), *module.network.initial_state()


def _dynamic(module: TorchPolicy) -> Any:
    """Any number of observations at once, where the network can take them."""
    return ({0: torch.export.Dim("batch")},) if module.network.batched else None


def _write_onnx(module: TorchPolicy, example: tuple[torch.Tensor, ...], path: Path) -> None:
    memory = [f"state_{number}" for number in range(len(example) - 1)]
    torch.onnx.export(
        module,
        example,
        str(path),
        input_names=["observation", *memory],
        output_names=["action", *(f"next_{name}" for name in memory)],
        dynamic_shapes=_dynamic(module),
        dynamo=True,
        external_data=False,
        verbose=False,
    )


def _onnx_step(path: Path) -> Step:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]
    return lambda *inputs: list(session.run(None, dict(zip(names, inputs, strict=True))))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporters' warnings about optional packages."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
