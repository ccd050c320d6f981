"""Builds the wheel with the examples in it; everything else is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class WithExamples(build_py):
    """Copy examples/ to esker/examples, where `esker examples` finds them; an editable install reads examples/ itself."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "esker" / "examples"
            shutil.copytree("examples", target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


setup(cmdclass={"build_py": WithExamples})
