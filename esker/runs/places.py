"""Where a policy is: a folder, `hf://owner/name` on a hub, or the name of a preset that comes with a trained policy."""

from __future__ import annotations

from pathlib import Path

from esker.errors import UsageError
from esker.presets import load_all
from esker.runs.hub import SCHEME, local_folder


def place(name: str | Path) -> Path:
    """The folder of a name; a folder of that name on this machine has precedence.

    A preset without a policy, or a policy that the hub lacks, raises UsageError.
    """
    if isinstance(name, str) and name.startswith(SCHEME):
        return local_folder(name)
    preset = None if Path(name).exists() else load_all().get(str(name))
    if preset is None:
        return Path(name)
    if preset.policy is None:
        shipped = ", ".join(one.name for one in load_all().values() if one.policy is not None)
        raise UsageError(
            f"no trained policy comes with the preset {preset.name!r}; those with one are {shipped}. "
            f"To train it: esker train {preset.env} --preset {preset.name}"
        )
    return preset.policy
