"""`python -m esker` is the command line."""

import sys

from esker.cli import main

sys.exit(main())
