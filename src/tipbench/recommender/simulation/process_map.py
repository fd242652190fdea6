"""A parallel map over processes that uses only pipes, so that a killed process leaves no semaphore behind.

A worker whose pipe is closed finishes its current task and exits.
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
_QUEUED_PER_WORKER = 2  # tasks, so that a worker never waits for the next one


def process_map(
    work: Callable[[_Task], _Result], tasks: Sequence[_Task], workers: int
) -> Iterator[tuple[_Task, _Result]]:
    """Yield each task with its result, in order of completion; re-raise what a worker raises.

    Raises SimulationFailed if a worker is killed.
    """
    context = get_context("spawn")
    remaining = iter(tasks)
    with ExitStack() as stack:
        pipes: list[Connection[Any, Any]] = []
        for _ in range(min(workers, len(tasks))):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(work, theirs), daemon=True)
            worker.start()
            theirs.close()
            stack.callback(worker.join)
            pipes.append(stack.enter_context(closing(ours)))
        for pipe in pipes * _QUEUED_PER_WORKER:
            _send_next(remaining, pipe)
        for _ in tasks:
            ready = wait(pipes)[0]
            assert isinstance(ready, Connection)
            yield _receive(ready)
            _send_next(remaining, ready)


def _send_next(remaining: Iterator[Any], pipe: "Connection[Any, Any]") -> None:
    for task in remaining:
        with suppress(BrokenPipeError):  # it has exited; what it sent before is read first
            pipe.send(task)
        return


def _receive(pipe: "Connection[Any, Any]") -> Any:
    try:
        found = pipe.recv()
    except (EOFError, ConnectionResetError) as error:
        raise SimulationFailed("a process of the simulation was killed, perhaps because memory ran out") from error
    if isinstance(found, Exception):
        raise found
    return found


def _work(work: Callable[[Any], Any], pipe: "Connection[Any, Any]") -> None:
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task = pipe.recv()
            try:
                found: Any = (task, work(task))
            except Exception as error:  # noqa: BLE001 - re-raised in the parent process
                error.add_note(format_exc())
                found = error
            pipe.send(found)
