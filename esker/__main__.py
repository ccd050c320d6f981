"""`python -m esker` is the command line."""

import os
import sys


def entry() -> int:
    """Run the command line; Ctrl-C while it is still being imported leaves no traceback."""
    try:
        from esker.cli import main

        return main()
    except KeyboardInterrupt:
        print("esker: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # `-m` put the working folder first: a torch.py in it would be imported as torch
    sys.exit(entry())
