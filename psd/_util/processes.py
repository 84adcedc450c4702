"""Run tasks in parallel processes that share private data and no randomness, or in threads.

Shared data goes to each process once, through a pipe and never a file. A process ends with its
parent, even if that is killed, so none keeps private data.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd.errors import InternalError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["available_processors", "map_tasks"]


S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")

_END_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Function and shared data of this process, if it is a worker.
_work_state: list[Any] = []


def available_processors() -> int:
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
    """Apply a function to every task in order; each process imports it by name.

    With one job everything runs in this process. `done` is told how many tasks are finished.

    P1. Processes are started afresh, not forked: they inherit no state of this one, and what they
    draw comes from the operating system.

    P2. When this returns or raises, the processes have ended; an interrupt does not wait for what
    they are doing.
    """
    if min(jobs, len(tasks)) <= 1:
        return list(_report_progress((function(shared, task) for task in tasks), done))
    # Most commands start no process, and these take a thirtieth of the time of a small build.
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    context = get_context("spawn")
    leash, parent_end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(
        min(jobs, len(tasks)),
        mp_context=context,
        initializer=_begin,
        initargs=(function, shared, leash),
    )
    try:
        with _defer_signals():
            futures = [pool.submit(_work, task) for task in tasks]
        for _ in _report_progress((future.result() for future in as_completed(futures)), done):
            pass
        return [future.result() for future in futures]
    except BaseException as error:
        parent_end.close()  # so that the workers end at once
        if isinstance(error, BrokenProcessPool):
            raise InternalError(
                "a parallel process was killed; is memory short (take fewer jobs), or "
                'is this a script without `if __name__ == "__main__":`?'
            ) from None
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        parent_end.close()
        leash.close()


def _report_progress(results: Iterator[R], done: Callable[[int], None]) -> Iterator[R]:
    """Pass results on, and report how many there were."""
    for number, result in enumerate(results, 1):
        done(number)
        yield result


@contextmanager
def _defer_signals() -> Iterator[None]:
    """Defer interrupts while processes start; the processes inherit the blocked signals."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _END_SIGNALS)
    try:
        # A thread of a library may still receive the signal, and the main thread then handles it.
        with _collect_signals():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _collect_signals() -> Iterator[None]:
    """Collect signals and raise the first at the end; only the main thread receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda n, _: received.append(n)) for number in _END_SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for first in received[:1]:
            signal.raise_signal(first)


def _begin(function: Callable[..., Any], shared: object, leash: Connection) -> None:
    """Make this process a worker: it ignores Ctrl-C and ends with its parent."""
    _work_state.extend((function, shared))
    threading.Thread(target=_end_with_parent, args=(leash,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _END_SIGNALS)


def _end_with_parent(leash: Connection) -> None:
    """End this process at once when the parent's end of the pipe is closed."""
    with suppress(EOFError, OSError):
        leash.recv_bytes()
    os._exit(1)


def _work(task: object) -> Any:
    """Run one task in a worker."""
    function, shared = _work_state
    return function(shared, task)


# More threads than this wait for memory rather than for a processor.
_MAX_THREADS = 4


def even_parts(items: int, least: int) -> list[slice]:
    """Slices of about equal length, one for each thread that has at least `least` items to do."""
    parts = max(1, min(available_processors(), _MAX_THREADS, items // least))
    return [slice(items * n // parts, items * (n + 1) // parts) for n in range(parts)]


def in_threads(function: Callable[[slice], T], parts: list[slice]) -> list[T]:
    """Apply a function to each slice; the results in the order of the slices."""
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))


def map_items(
    function: Callable[..., NDArray[Any]], *arrays: NDArray[Any], least: int
) -> NDArray[Any]:
    """Apply a function of single items to arrays, (n, ...), in threads of `least` items or more."""
    parts = even_parts(len(arrays[0]), least)
    results = in_threads(lambda part: function(*(array[part] for array in arrays)), parts)
    return results[0] if len(results) == 1 else np.concatenate(results)
