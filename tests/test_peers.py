"""What `make bench-peers` makes of the seeds that it stored."""

import importlib.util
from pathlib import Path

PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"


def tables():
    specification = importlib.util.spec_from_file_location("peers_tables", PEERS / "tables.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def seeds(*seconds, solved=True):
    return [{"seed": n, "solved": solved, "seconds": s, "steps": 1000, "generations": 5} for n, s in enumerate(seconds)]


def test_an_unsolved_seed_is_the_worst_and_the_best_peer_is_the_one_with_the_shortest_median():
    contenders = {
        "esker": seeds(1.0, 2.0, 3.0),
        "evotorch": seeds(30.0, 30.0) + seeds(60.0, solved=False),
        "minimal": seeds(5.0, 10.0, 40.0),
    }
    heading = {"date": "d", "commit": "c", "machine": "m", "versions": {"esker": "1"}}
    rows = tables().as_markdown(heading | {"solve": heading | {"seeds": contenders}}).splitlines()[-3:]
    assert [row.split("|")[1:6] for row in rows] == [
        [" esker ", " 3 of 3 ", " 2.00 ", " 3.00 ", " 5.00 "],
        [" evotorch ", " 2 of 3 ", " 30.00 ", " unsolved ", " 0.33 "],
        [" minimal ", " 3 of 3 ", " 10.00 ", " 40.00 ", " 1.00 "],
    ]
