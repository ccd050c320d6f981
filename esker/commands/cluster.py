"""`esker cluster head`, `join` and `stop`: thin wrappers of `ray start`."""

from __future__ import annotations

from argparse import Namespace

from esker.commands.base import Commands, command, console
from esker.config.flags import Parser
from esker.errors import UsageError

DESCRIPTION = """\
Make machines a cluster. On the first machine, then on each other one, then anywhere:

  esker cluster head
  esker cluster join HOST:6379
  esker train Humanoid-v5 --engine ray --address auto
  esker cluster stop

Nodes and drivers show each other a token, kept in a file that only you can read: copy it to every machine. Ray's ports
listen on all interfaces and its messages are not encrypted: use a private network, or Ray's TLS settings."""


def add(commands: Commands[Parser]) -> None:
    """Register the command."""
    parser = command(commands, "cluster", _help, "make machines a cluster: head, join, stop", DESCRIPTION)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", parser_class=Parser)
    head = command(actions, "head", run_head, "start the first node of a cluster on this machine")
    head.add_argument("--port", type=int, default=6379, help="port for other nodes (default: 6379)")
    head.add_argument("--persist", metavar="DIR", help="keep the head's state here, so that a restarted head finds it")
    join = command(actions, "join", run_join, "add this machine to a cluster")
    join.add_argument("head", metavar="HOST:PORT", help="where the head is")
    stop = command(actions, "stop", run_stop, "end this machine's node of a cluster; other clusters' nodes stay")
    stop.add_argument("address", metavar="HOST:PORT", nargs="?", help="the cluster (default: the only one here)")
    for action in (head, join):
        action.add_argument("--workers", type=int, metavar="N", help="workers on this machine (default: its CPUs)")
        action.add_argument("--slots", type=int, metavar="N", help="environments per worker here (default: the run's)")
        action.add_argument("--resources", metavar="JSON", help="Ray resources of this machine, for --resources of a run")
        action.add_argument("--host", metavar="IP", help="this machine's address as others see it")
        action.add_argument("--block", action="store_true", help="stay in the foreground; Ctrl-C ends the node")


def _help(namespace: Namespace) -> int:
    namespace.parser.print_help()
    return 0


def run_head(namespace: Namespace) -> int:
    """Start a head."""
    from esker.cluster import machine

    share = _share(namespace)
    token = machine.start_head(namespace.port, share, persist=namespace.persist, block=namespace.block)
    host = namespace.host or machine.own_address()
    say(f"the head is up at {host}:{namespace.port}; its token is in {token}")
    say(f"on each other machine, with a copy of that file (mode 0600): esker cluster join {host}:{namespace.port}")
    say("then: esker train ENV --engine ray --address auto      to end this node: esker cluster stop")
    return 0


def run_join(namespace: Namespace) -> int:
    """Add this machine."""
    from esker.cluster import machine

    machine.start_node(namespace.head, _share(namespace), block=namespace.block)
    say(f"this machine has joined the cluster at {namespace.head}; to end this node: esker cluster stop")
    return 0


def run_stop(namespace: Namespace) -> int:
    """End this machine's node."""
    from esker.cluster.node_stop import stop_node

    address, ended = stop_node(namespace.address)
    say(f"the node of the cluster at {address} has ended on this machine ({ended} processes)")
    return 0


def say(text: str) -> None:
    """A line of plain text."""
    console().print(text, highlight=False, soft_wrap=True, markup=False)


def _share(namespace: Namespace) -> list[str]:
    """The flags of `ray start` that declare this machine's resources."""
    import json

    for name, value, low in (("workers", namespace.workers, 0), ("slots", namespace.slots, 1)):
        if value is not None and value < low:
            raise UsageError(f"{name} is {value}; expected at least {low}")
    flags = [] if namespace.workers is None else [f"--num-cpus={namespace.workers}"]
    if namespace.slots is not None:
        flags.append(f"--labels=esker-slots={namespace.slots}")
    if namespace.resources is not None:
        example = '{"machine": 1}'
        try:
            well = isinstance(json.loads(namespace.resources), dict)
        except ValueError:
            well = False
        if not well:
            raise UsageError(f"resources is {namespace.resources!r}; expected a JSON object such as {example}")
        flags.append(f"--resources={namespace.resources}")
    if namespace.host is not None:
        flags.append(f"--node-ip-address={namespace.host}")
    return flags
