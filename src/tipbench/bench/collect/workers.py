"""Several tasks side by side, and never more of them in memory than run at once."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def side_by_side(work: Callable[[_Task], _Result], tasks: Iterable[_Task], at_once: int) -> Iterator[_Result]:
    """The results as they come. No more tasks than that are begun, so memory does not grow with their number."""
    if at_once == 1:
        yield from map(work, tasks)
        return
    waiting = iter(tasks)
    running: set[Future[_Result]] = set()
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="generate")
    is_broken_off = False
    try:
        while True:
            for task in islice(waiting, at_once - len(running)):
                running.add(pool.submit(work, task))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except (KeyboardInterrupt, GeneratorExit):  # here, or where the results go
        is_broken_off = True
        raise
    finally:
        pool.shutdown(wait=not is_broken_off, cancel_futures=is_broken_off)  # a generation can take minutes
