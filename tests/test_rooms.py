"""The house: few modules at the top, imports that point one way, files and functions that stay short."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent / "esker"
# A room may import from those before it, and from itself.
ORDER = [
    "errors",
    "system",
    "noise",
    "policies",
    "strategies",
    "presets",
    "worlds",
    "config",
    "learners",
    "tasks",
    "engines",
    "algorithms",
    "functions",
    "runs",
    "logs",
    "cluster",
    "tools",
    "api",
    "evolution",
    "interfaces",
    "language",
    "sweep",
    "bench",
    "commands",
    "cli",
]


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """What of esker a file imports, at its top or inside a function; not what only a type checker reads."""
    tree = ast.parse(path.read_text())
    checked = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for part in node.body
        for inner in ast.walk(part)
    }
    for node in ast.walk(tree):
        if id(node) in checked:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "esker":
            if node.module == "esker":
                yield from ((f"esker.{alias.name}", node.lineno) for alias in node.names if alias.name != "__version__")
            else:
                yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names if alias.name.startswith("esker."))


def test_at_most_six_modules_lie_at_the_top() -> None:
    loose = sorted(path.name for path in ROOT.glob("*.py"))
    assert len(loose) <= 6, loose


def test_imports_point_one_way() -> None:
    wrong = []
    for name, path in modules():
        room = name.split(".")[0]
        if room in ("", "__main__"):
            continue
        for target, line in imports(path):
            other = target.split(".")[1]
            if other in ORDER and ORDER.index(other) > ORDER.index(room):
                wrong.append(f"{path.relative_to(ROOT.parent)}:{line} imports {target}: {room} comes before {other}")
    assert not wrong, "\n".join(wrong)


def test_no_module_imports_itself_by_way_of_others() -> None:
    known = {name for name, _ in modules()}
    graph = {}
    for name, path in modules():
        if not name:
            continue
        targets = set()
        for target, _ in imports(path):
            inner = target.removeprefix("esker.")
            while inner and inner not in known:
                inner = inner.rpartition(".")[0]
            if inner and inner != name:
                targets.add(inner)
        graph[name] = targets
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in done:
            for target in sorted(graph.get(name, ())):
                visit(target, (*path, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_files_and_functions_stay_short() -> None:
    long = []
    for _, path in modules():
        text = path.read_text()
        if text.count("\n") > 350:
            long.append(f"{path.relative_to(ROOT.parent)} has {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > 60:
                    long.append(f"{path.relative_to(ROOT.parent)}:{node.lineno} {node.name} has {lines} lines")
    assert not long, "\n".join(long)
