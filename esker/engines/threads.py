"""The thread engine: tasks that cannot leave the process, or that spend their time outside Python's lock."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from esker.engines.plan import Plan
from esker.noise.table import NoiseTable
from esker.tasks.task import Evaluator, Job, Result, Task, silent_board


class ThreadEngine:
    """Evaluates plans on threads; each has its own task, so they share nothing they write to."""

    def __init__(self, tasks: Sequence[Task], table: NoiseTable | None) -> None:
        self._evaluators: list[Evaluator] = [task.open(table, silent_board()) for task in tasks]
        self._pool = ThreadPoolExecutor(len(tasks), thread_name_prefix="esker")
        self._lock = Lock()

    def evaluate(self, job: Job, plan: Plan) -> None:
        """Evaluate the plan; the first failure ends every thread, at the end of the call it is in."""
        ended = False

        def take(free: int, busy: int) -> list[int] | None:
            with self._lock:
                return None if ended else plan.take(free)

        def give(results: Sequence[Result]) -> None:
            with self._lock:
                plan.add(results)

        def work(evaluator: Evaluator) -> None:
            nonlocal ended
            try:
                evaluator.evaluate(job, take, give)
            except BaseException:
                ended = True
                raise

        futures = [self._pool.submit(work, evaluator) for evaluator in self._evaluators]
        try:
            for future in futures:
                future.result()
        finally:
            ended = True

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for evaluator in self._evaluators:
            evaluator.close()
