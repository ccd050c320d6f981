"""A user's model and reward for a coordinator on the cluster: `esker.Evolution(…, engine="ray", run_dir=…)`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esker.cluster.submit import MOST_PACKED, pack
from esker.errors import RunError
from esker.functions.lowrank.batches import LowRankBatches
from esker.functions.pickling import check_sendable
from esker.functions.problem import Problem
from esker.functions.state import FunctionEvolution


def pack_problem(problem: Problem, state: FunctionEvolution, note: Callable[[str], None]) -> bytes | None:
    """Model and reward as a coordinator is given them; None where the loop must stay with the model.

    The run folder has the values that move: without them even a large model is a small message. What cannot be pickled
    raises UsageError.
    """
    flat = state.flat
    if isinstance(state.task, LowRankBatches):  # its loop updates the model, on a device
        return None
    if state.task.device != "cpu" or any(tensor.device.type != "cpu" for tensor in flat.tensors):
        return None
    values = flat.read()
    try:
        flat.write(np.zeros_like(values))
        packed = pack(problem)
    except Exception as error:  # whatever a user's object raises when it is pickled
        check_sendable(problem.model, state.task.call.function)
        raise RunError(f"the reward cannot be sent to the cluster: {error}") from error
    finally:
        flat.write(values)
    if len(packed) <= MOST_PACKED:
        return packed
    note(f"model and reward take {len(packed):,} bytes, too many for a coordinator: the loop stays in this process")
    return None
