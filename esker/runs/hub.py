"""Policies from a model hub: `hf://owner/name` as a checkpoint folder on this machine. Only data is fetched, never code."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from esker.errors import RunError, UsageError

SCHEME = "hf://"
NAME = re.compile(r"hf://([\w][\w.-]*)/([\w][\w.-]*)(?:@([\w][\w.-]*))?")
FILES = ("state.safetensors", "state.json", "config.toml", "about.json")  # what `esker card` writes and acting needs
LARGEST = 2**31  # bytes of one file
TIMEOUT = 30.0  # seconds without a response


def local_folder(name: str) -> Path:
    """The checkpoint folder of `hf://owner/name` or `hf://owner/name@revision`, fetched into a folder that is kept.

    A wrong name, or a repository without an esker policy, raises UsageError; a hub out of reach RunError.
    """
    found = NAME.fullmatch(name)
    if not found or ".." in name:
        raise UsageError(f"the policy is {name!r}; expected hf://owner/name or hf://owner/name@revision")
    owner, repository, revision = found[1], found[2], found[3] or "main"
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "esker" / "hub"
    folder = root / owner / repository / revision
    folder.mkdir(parents=True, exist_ok=True)
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    for file in FILES:
        _fetch(f"{endpoint}/{owner}/{repository}/resolve/{revision}/{file}", folder / file, name)
    return folder


def _fetch(address: str, target: Path, name: str) -> None:
    """Fetch one file, whole or not at all."""
    request = urllib.request.Request(address, headers={"User-Agent": "esker"})
    if token := os.environ.get("HF_TOKEN"):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    descriptor, part = tempfile.mkstemp(dir=target.parent)
    try:
        with open(descriptor, "wb") as file, urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            while chunk := response.read(2**20):
                if file.tell() + len(chunk) > LARGEST:
                    raise UsageError(f"{name}: {target.name} is larger than {LARGEST:,} bytes")
                file.write(chunk)
        os.replace(part, target)
    except urllib.error.HTTPError as error:
        if error.code in (401, 403, 404):
            wanted = "expected a folder that `esker card` wrote, public or with HF_TOKEN set"
            raise UsageError(f"{name} has no {target.name} ({error.code}); {wanted}") from error
        raise RunError(f"{name}: the hub returns status {error.code} for {target.name}; try again later") from error
    except OSError as error:
        raise RunError(f"{name}: the hub cannot be reached: {getattr(error, 'reason', error)}") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)
