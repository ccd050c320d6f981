"""The notebooks run from their first cell to their last, in a real kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples" / "notebooks").glob("*.ipynb"))


def executed(notebook: Any, folder: Path) -> Any:
    """The notebook with its outputs. A cell that raises fails the test."""
    options = {"resources": {"metadata": {"path": str(folder)}}, "timeout": 120, "kernel_name": "python3"}
    return nbclient.NotebookClient(notebook, **options).execute()


def outputs(cell: Any, kind: str) -> list[str]:
    """What a cell shows, of one kind."""
    return [output["data"][kind] for output in cell["outputs"] if kind in output.get("data", {})]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    if path.stem == "language_model":
        pytest.importorskip("transformers")
    notebook = nbformat.read(path, as_version=4)
    assert all(cell["outputs"] == [] for cell in notebook.cells if cell["cell_type"] == "code")  # stored without output
    executed(notebook, tmp_path)


CELLS = [
    """
import esker, gymnasium, numpy, torch

class Level(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,), numpy.float64)
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"]}
    def __init__(self, render_mode=None):
        self.render_mode = render_mode
    def reset(self, *, seed=None, options=None):
        return numpy.ones(1), {}
    def step(self, action):
        return numpy.ones(1), float(action), True, False, {}
    def render(self):
        return numpy.zeros((16, 16, 3), numpy.uint8)

class Net(torch.nn.Module):
    def __init__(self, shape, outputs):
        super().__init__()
        self.layer = torch.nn.Linear(shape[0], outputs)
    def forward(self, x):
        return self.layer(x)

run = esker.train(Level, network=Net, population=4, generations=3, workers=1, preset=None, run_dir="run")
""",
    "run",
    "run.plot()",
    "run.render()",
    "print(run.resume(generations=4, quiet=True).evaluate(episodes=2))",
]


def test_a_run_of_classes_from_a_notebook_is_shown_in_place(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    train, run, plot, video, evaluated = executed(notebook, tmp_path).cells
    (display,) = train["outputs"]  # one, which was updated in place
    assert all(text in display["data"]["text/html"] for text in ("finished", "3 generations done", "took", "<svg"))
    assert "best centre return" in outputs(run, "text/html")[0]
    assert len(outputs(plot, "image/png")[0]) > 1000
    assert "<video" in outputs(video, "text/html")[0]
    assert "over 2 episodes" in evaluated["outputs"][0]["text"]
