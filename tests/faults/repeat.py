"""A test that failed once on a busy machine, many times on one Ray cluster: python tests/faults/repeat.py --times 200"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "cluster"), str(HERE.parent)]
from conftest import Machines  # noqa: E402
from test_cluster_requests import (  # noqa: E402
    test_an_environment_that_only_the_driver_can_import_is_named_with_the_node as repeated,
)


def main() -> int:
    import ray

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    times, failed = parser.parse_args().times, 0
    machines, began = Machines(), time.monotonic()
    ray.init(address=machines.address, namespace="esker", log_to_driver=False, logging_level="CRITICAL")
    for _ in range(2):
        machines.add()
    machines.settle()
    for number in range(1, times + 1):
        with tempfile.TemporaryDirectory(prefix="esker-repeat-") as place:
            try:
                repeated(machines, Path(place))
            except BaseException:
                failed += 1
                traceback.print_exc()
        if number % 10 == 0 or number == times:
            print(f"{number} of {times} in {time.monotonic() - began:.0f} s, {failed} failed", flush=True)
    ray.shutdown()
    machines.cluster.shutdown()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
