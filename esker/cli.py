"""The command line. Status: 0 done, 2 the request was wrong, 1 it failed, 130 interrupted after saving."""

from __future__ import annotations

import os
import sys
from argparse import Action, ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from esker.commands.every import WITH_OPTIONS, add_commands
from esker.config.flags import Parser
from esker.errors import RunError, UsageError, named_line

LONGEST = 4_000  # characters of a message


class Version(Action):
    """Prints the version; its commit is looked up only then."""

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        from esker.system.version import version_text

        print(f"esker {version_text()}")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] and given[0] in WITH_OPTIONS:
        sys.path.insert(0, os.getcwd())  # `module:make_env` means the user's own folder too
    try:
        parser = Parser(prog="esker", description="Evolution strategies for people who train policies.")
        parser.add_argument("--version", action=Version, nargs=0, help="print the version and its commit")
        add_commands(parser, given)
        namespace = parser.parse_strictly(given)
        if not hasattr(namespace, "command"):
            parser.print_help()
            return 0
        _open_working_folder(namespace)
        return int(namespace.command(namespace))
    except UsageError as error:
        return _say(str(error), 2)
    except RunError as error:
        return _say(str(error), 1)
    except KeyboardInterrupt as error:
        return _say(str(error) or "interrupted", 130)
    except BrokenPipeError:  # the reader of the output is gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except OSError as error:
        return _say(_os_error(error), 1)
    except Exception as error:
        if os.environ.get("ESKER_TRACEBACK"):
            raise
        return _say(f"unexpected {named_line(error)} (a bug in esker; set ESKER_TRACEBACK=1 for the traceback)", 1)


def _os_error(error: OSError) -> str:
    """An OSError in one line, with the file's name."""
    where = f"{str(error.filename)!r}: " if error.filename is not None else ""
    return " ".join(f"{where}{error.strerror or error or type(error).__name__}".split())


def _open_working_folder(namespace: Namespace) -> None:
    """Let modules of the working folder be imported, where the request names them; reading a run must not import any."""
    if getattr(namespace, "imports_here", False):  # `module:make_env` means the user's own folder too
        sys.path.insert(0, os.getcwd())
    elif getattr(namespace, "trust", None):
        sys.path.append(os.getcwd())  # last: it must not shadow installed modules


def _say(text: str, status: int) -> int:
    prefix = "" if status == 130 else "error: "
    text = text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    print(f"esker: {prefix}{text}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
