"""Work for several processes at once, by pipes alone: a process that is killed leaves no semaphore behind.

A worker whose pipe closes has nobody to work for, and ends with what it has in hand.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from traceback import format_exc
from typing import Any, TypeVar

from tipbench.core.errors import SimulationFailed

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_IN_HAND = 2  # tasks of a worker, so that it never waits for the next one


def process_map(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int
) -> Iterator[tuple[_Task, _Result]]:
    """Each task with its result, in the order in which they are done. What a worker raises is raised here."""
    context = get_context("spawn")
    left = iter(tasks)
    with ExitStack() as stack:
        pipes: list[Connection[Any, Any]] = []
        for _ in range(min(workers, len(tasks))):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(work, theirs), daemon=True)
            worker.start()
            theirs.close()
            stack.callback(worker.join)
            pipes.append(stack.enter_context(closing(ours)))
        for pipe in pipes * _IN_HAND:
            _hand_out(left, pipe)
        for _ in tasks:
            ready = wait(pipes)[0]
            assert isinstance(ready, Connection)
            yield _received(ready)
            _hand_out(left, ready)


def _hand_out(left: Iterator[Any], pipe: "Connection[Any, Any]") -> None:
    for task in left:
        with suppress(BrokenPipeError):  # it has ended; what it said before is read first
            pipe.send(task)
        return


def _received(pipe: "Connection[Any, Any]") -> Any:
    try:
        found = pipe.recv()
    except (EOFError, ConnectionResetError) as error:
        raise SimulationFailed("a process of the simulation was killed, perhaps for want of memory") from error
    if isinstance(found, Exception):
        raise found
    return found


def _work(work: Callable[[Any], Any], pipe: "Connection[Any, Any]") -> None:
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task = pipe.recv()
            try:
                found: Any = (task, work(task))
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                error.add_note(format_exc())
                found = error
            pipe.send(found)
