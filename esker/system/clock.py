"""Time, threads and the end of a process, as the cluster's protocol uses them: a simulated cluster puts its own here."""

from os import _exit as exit_process
from queue import SimpleQueue
from threading import Condition, Event, Lock, Thread
from time import monotonic, sleep, time, time_ns

__all__ = ["Condition", "Event", "Lock", "SimpleQueue", "Thread", "exit_process", "monotonic", "sleep", "time", "time_ns"]
