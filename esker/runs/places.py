"""Where a policy is: a folder, `hf://owner/name` on a hub, or the name of a preset that comes with a trained policy."""

from __future__ import annotations

from pathlib import Path

from esker.errors import UsageError, nearest
from esker.presets import load_all
from esker.runs.hub import SCHEME, local_folder


def place(name: str | Path) -> Path:
    """The folder of a name; a folder of that name on this machine has precedence.

    A preset without a policy, a misspelt one, or a policy that the hub lacks raises UsageError.
    """
    if isinstance(name, str) and name.startswith(SCHEME):
        return local_folder(name)
    if Path(name).exists():
        return Path(name)
    presets = load_all()
    shipped = [one.name for one in presets.values() if one.policy is not None]
    preset = presets.get(str(name))
    if preset is None:
        if close := nearest(str(name), shipped):
            raise UsageError(f"{str(name)!r} does not exist{close}")
        return Path(name)
    if preset.policy is None:
        raise UsageError(
            f"no trained policy comes with the preset {preset.name!r}; those with one are {', '.join(shipped)}. "
            f"To train it: esker train {preset.env} --preset {preset.name}"
        )
    return preset.policy
