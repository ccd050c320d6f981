"""`python -m esker` is the command line."""

import os
import sys

if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
    del sys.path[0]  # `-m` put the working folder first: a torch.py in it would be imported as torch

from esker.cli import main

sys.exit(main())
