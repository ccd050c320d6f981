"""The token that workers show to the process that coordinates them."""

from __future__ import annotations

import os
import time

from esker.errors import UsageError
from esker.system.tokens import check_private, config_folder, make_token

VARIABLE = "ESKER_TOKEN"


def worker_token(given: str | None, make: bool) -> str:
    """The token: as given, of $ESKER_TOKEN, or of the user's own file, which a coordinator makes. Raises UsageError."""
    chosen = given or os.environ.get(VARIABLE)
    if chosen is not None:
        return chosen
    path = config_folder() / "worker-token"
    if make:
        make_token(path)
    if not path.is_file():
        raise UsageError(f"no token: give token=…, set {VARIABLE}, or copy {path} from the coordinator's machine")
    check_private(path)
    for _ in range(50):  # another process may be about to write what it has just made
        if text := path.read_text().strip():
            return text
        time.sleep(0.02)
    raise UsageError(f"the token file {str(path)!r} is empty; remove it and start again")
