"""Where the work runs: threads here, or workers elsewhere."""

from .executors import Executor, Threads, WorkersError

__all__ = ["Executor", "Threads", "WorkersError"]
