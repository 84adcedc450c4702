"""One function for many tasks in parallel processes that share private data and no randomness.

What the tasks have in common goes to each process once, through a pipe and never through a file,
and a process ends with its parent, however that ends: nobody is left who holds private data.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from psd.errors import InternalError

__all__ = ["available", "map_tasks"]

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_ENDING = (signal.SIGINT, signal.SIGTERM)

# What this process works with, if it is a worker.
_given: list[Any] = []


def available() -> int:
    """Number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_tasks(
    function: Callable[[S, T], R],
    shared: S,
    tasks: Sequence[T],
    *,
    jobs: int,
    done: Callable[[int], None],
) -> list[R]:
    """Results of a function for every task, in the order of the tasks.

    Guarantees
    ----------
    - Processes are started afresh, not forked: they inherit no state of this one, and what they
      draw comes from the operating system.
    - When this returns or raises, the processes have ended; an interrupt does not wait for what
      they are doing.

    Parameters
    ----------
    function : callable
        Of the shared data and a task; found by its name in the module that defines it.
    shared : object
        What all tasks have in common. Private.
    tasks : sequence
        What differs.
    jobs : int
        Most processes; with 1 everything happens in this one.
    done : callable
        Told the number of finished tasks after each.

    Raises
    ------
    InternalError
        If a process was ended from outside.
    """
    if min(jobs, len(tasks)) <= 1:
        return list(_counted((function(shared, task) for task in tasks), done))
    return _in_processes(function, shared, tasks, jobs=min(jobs, len(tasks)), done=done)


def _counted(results: Iterator[R], done: Callable[[int], None]) -> Iterator[R]:
    """The same results; tell how many there were."""
    for number, result in enumerate(results, 1):
        done(number)
        yield result


def _in_processes(
    function: Callable[[S, T], R],
    shared: S,
    tasks: Sequence[T],
    *,
    jobs: int,
    done: Callable[[int], None],
) -> list[R]:
    """Results from a pool that is gone afterwards."""
    context = get_context("spawn")
    leash, held = context.Pipe(duplex=False)
    given = (function, shared, leash)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=given)
    try:
        with _held_signals():
            futures = [pool.submit(_work, task) for task in tasks]
        for _ in _counted((future.result() for future in as_completed(futures)), done):
            pass
        return [future.result() for future in futures]
    except BaseException as error:
        held.close()
        if isinstance(error, BrokenProcessPool):
            raise InternalError(
                "a parallel process was ended from outside; is memory short (take fewer jobs), or "
                'is this a script without `if __name__ == "__main__":`?'
            ) from None
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        held.close()
        leash.close()


@contextmanager
def _held_signals() -> Iterator[None]:
    """Let an interrupt wait while processes start; they inherit that until they ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        # A thread of a library may take the signal all the same, and the main one then hears of it.
        with _noted_signals():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _noted_signals() -> Iterator[None]:
    """Note what arrives, and let it happen at the end; only the main thread hears of signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before = {number: signal.signal(number, lambda n, _: noted.append(n)) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for heard in noted[:1]:
            signal.raise_signal(heard)


def _begin(function: Callable[..., Any], shared: object, leash: Connection) -> None:
    """Make this process a worker: Ctrl-C is for the parent, whose end is the worker's end."""
    _given.extend((function, shared))
    threading.Thread(target=_end_with_parent, args=(leash,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _end_with_parent(leash: Connection) -> None:
    """End this process at once when nobody holds the other end of the leash."""
    with suppress(EOFError, OSError):
        leash.recv_bytes()
    os._exit(1)


def _work(task: object) -> Any:
    """One task in a worker."""
    function, shared = _given
    return function(shared, task)
