"""Time, threads and waiting of the cluster's protocol, by one name: a simulated cluster puts its own here."""

from queue import SimpleQueue
from threading import Condition, Event, Lock, Thread
from time import monotonic, sleep, time, time_ns

__all__ = ["Condition", "Event", "Lock", "SimpleQueue", "Thread", "monotonic", "sleep", "time", "time_ns"]
