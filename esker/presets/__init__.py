"""Presets: one TOML per environment and algorithm, chosen by name or for a known environment.

The package can be called: `esker.presets("CartPole-v1")` returns the presets of an environment, `esker.presets()` all.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.errors import UsageError, nearest
from esker.system.callable_module import call_as

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Preset:
    """Options that were found to work for an environment, and their evidence."""

    name: str
    env: str
    algo: str
    about: str
    evidence: str | None
    options: dict[str, Any]
    automatic: bool = False  # the default preset of an environment that has several with evidence
    instead_of: str | None = None  # a run that takes this algorithm by default names the preset

    @property
    def policy(self) -> Path | None:
        """The folder of the trained policy that comes with it, if there is one: next to its file, under the same name."""
        folder = FOLDER / self.name
        return folder if folder.is_dir() else None


def load_all() -> dict[str, Preset]:
    """Every preset by name (`cartpole/es`)."""
    files = sorted(FOLDER.glob("*/*.toml"))
    return {preset.name: preset for preset in (_read(path, f"{path.parent.name}/{path.stem}") for path in files)}


def presets_for(env: str | None = None) -> list[Preset]:
    """The presets of an environment, by its id, the id without version, or the first part of their names.

    Without an environment, all. One that has none raises UsageError.
    """
    known = load_all().values()
    found = [one for one in known if env is None or env in (one.env, one.name.partition("/")[0], one.env.partition("-v")[0])]
    if not found:
        names = {name for one in known for name in (one.env, one.name.partition("/")[0])}
        raise UsageError(f"no preset for {env!r}{nearest(str(env), names)}; `esker presets` lists all")
    return found


def _read(path: Path, name: str) -> Preset:
    values = tomllib.loads(path.read_text())
    optional = {key: values[key] for key in ("automatic", "instead_of") if key in values}
    required = (values["env"], values["algo"], values["about"], values.get("evidence"), values["options"])
    return Preset(name, *required, **optional)


def find(name: str, algo: str) -> Preset:
    """The preset of this name or file; `cartpole` means `cartpole/<algo>`. An unknown one raises UsageError."""
    if name.endswith(".toml"):
        return _from_file(Path(name))
    presets = load_all()
    found = presets.get(name) or presets.get(f"{name}/{algo}")
    if found is None:
        raise UsageError(f"unknown preset {name!r}{nearest(name, presets)}; `esker presets` lists them")
    return found


def _from_file(path: Path) -> Preset:
    """A preset of the user's own, as `esker sweep` writes it."""
    try:
        return _read(path, str(path))
    except KeyError as error:
        raise UsageError(f"preset file {str(path)!r} has no {error}; expected env, algo, about and options") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"preset file {str(path)!r} cannot be read: {error}".replace("\n", " ")) from error


def for_environment(env: str, algo: str) -> Preset | None:
    """The preset that an environment gets by default: one with evidence, else the one named after the algorithm."""
    known = [preset for preset in load_all().values() if (preset.env, preset.algo) == (env, algo)]
    own = [preset for preset in known if preset.name.endswith(f"/{algo}")]
    # A setting that was seen to learn beats one that was not, unless that one was seen too.
    chosen = [preset for preset in known if preset.automatic]
    candidates = chosen or [preset for preset in own + known if preset.evidence is not None] or own
    return candidates[0] if candidates else None


call_as(__name__, __name__, "presets_for")
