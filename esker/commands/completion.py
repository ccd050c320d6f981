"""`esker completion`: scripts that complete commands, flags and their choices in a shell."""

from __future__ import annotations

from argparse import SUPPRESS, Namespace
from collections.abc import Mapping
from typing import Any

from esker.algorithms import registry
from esker.commands.base import Commands, command
from esker.commands.every import WITH_OPTIONS, add_commands
from esker.config.flags import Parser

HELP = """\
Print a script that completes commands and flags. For one session, or for all sessions from your shell's start file:

  bash:  source <(esker completion bash)          (~/.bashrc)
  zsh:   source <(esker completion zsh)           (~/.zshrc, after compinit)
  fish:  esker completion fish > ~/.config/fish/completions/esker.fish"""

BASH = """\
_esker_complete() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands}" -- "$word"))
        return
    fi
    case "$command $before" in
{choices}
    esac
    if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        return
    fi
    case "$command" in
{flags}
    esac
    if [ "${{word#-}}" != "$word" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -W "$(_esker_names "$command")" -- "$word") $(compgen -f -- "$word"))
    fi
}}
_esker_names() {{
    case "$1" in
{names}
    esac
}}
complete -o filenames -F _esker_complete esker
"""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "completion", run, "print a script that completes commands and flags in a shell", HELP)
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")


def run(namespace: Namespace) -> int:
    """Run the command."""
    shells = {"bash": bash, "zsh": zsh, "fish": fish}
    print(shells[namespace.shell](_parsers()), end="")
    return 0


def bash(parsers: Mapping[str, Any]) -> str:
    """The script for bash."""
    flags = [f'        {name}) words="{" ".join(_flags(parser))}" ;;' for name, parser in parsers.items()]
    choices = [
        f'        "{name} {flag}") words="{" ".join(values)}" ;;'
        for name, parser in parsers.items()
        for flag, values in _choices(parser).items()
    ]
    names = [
        f'        {name}) echo "{" ".join(words)}" ;;' for name, parser in parsers.items() if (words := _names(name, parser))
    ]
    return BASH.format(
        commands=" ".join(parsers), flags="\n".join(flags), choices="\n".join(choices), names="\n".join(names)
    )


def zsh(parsers: Mapping[str, Any]) -> str:
    """The script for zsh, which runs bash's."""
    return "autoload -U +X bashcompinit && bashcompinit\n" + bash(parsers)


def fish(parsers: Mapping[str, Any]) -> str:
    """The script for fish, with the help of every flag."""
    lines = ["complete -c esker -e"]
    for name, parser in parsers.items():
        lines.append(f"complete -c esker -n __fish_use_subcommand -f -a {name} -d {_quoted(parser.description)}")
        when = f"-n '__fish_seen_subcommand_from {name}'"
        if words := _names(name, parser):
            lines.append(f"complete -c esker {when} -a {_quoted(' '.join(words))}")
        choices = _choices(parser)
        for action in parser._actions:
            for option in (flag for flag in action.option_strings if flag.startswith("--")):
                values = f" -x -a {_quoted(' '.join(choices[option]))}" if option in choices else ""
                takes = "" if action.nargs == 0 or values else " -r"
                lines.append(f"complete -c esker {when} -l {option[2:]}{values}{takes} -d {_quoted(action.help)}")
    return "\n".join(lines) + "\n"


def _parsers() -> dict[str, Any]:
    """The parser of every command; `train` and `sweep` have the flags of every algorithm."""
    found: dict[str, Any] = dict(add_commands(Parser(prog="esker"), []).choices)
    for name in WITH_OPTIONS:
        for algo in registry.names():
            parser = add_commands(Parser(prog="esker"), [name, "--algo", algo, "--help-all"]).choices[name]
            known = set(_flags(found[name]))
            found[name]._actions += [
                action for action in parser._actions if action.option_strings and not known & set(action.option_strings)
            ]
    return found


def _flags(parser: Any) -> list[str]:
    shown = [action for action in parser._actions if action.help != SUPPRESS]  # older names are understood, not offered
    return [option for action in shown for option in action.option_strings if option.startswith("--")]


def _choices(parser: Any) -> dict[str, list[str]]:
    """The values that a flag may have, where they are known: from its choices, or from a help such as {adam,sgd}."""
    found = {}
    for action in parser._actions:
        shown = str(action.metavar or "")
        values = list(map(str, action.choices or [])) or (shown[1:-1].split(",") if shown.startswith("{") else [])
        found.update({option: values for option in action.option_strings if values and option.startswith("--")})
    return found


def _names(name: str, parser: Any) -> list[str]:
    """Completions of a command's first argument: actions, shells, environments, `latest`."""
    for action in parser._actions:
        if not action.option_strings and action.choices:
            return list(map(str, action.choices))
    arguments = [action.dest for action in parser._actions if not action.option_strings]
    if arguments[:1] == ["env"]:
        from esker.presets import load_all

        return sorted({preset.env for preset in load_all().values()})
    return ["latest"] if arguments[:1] in (["run"], ["runs"]) and name not in ("attach", "stop") else []


def _quoted(text: str | None) -> str:
    """A text for a shell, in one line."""
    line = " ".join((text or "").replace("%%", "%").split(". ")[0].split())
    return "'" + line.replace("\\", "\\\\").replace("'", "\\'") + "'"
