"""Worker processes of the service: one listening socket, and a parent that replaces a worker that dies.

A worker imports what it needs once it runs, so that it is there, and can be ended, from its beginning.
"""

import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

from tipbench.cli.interrupts import handle_interrupts
from tipbench.cli.listening import GRACE_S, uvicorn_options
from tipbench.core.errors import TipbenchError
from tipbench.core.settings import Settings

_ENDING = (signal.SIGINT, signal.SIGTERM)
_PATIENCE_S = GRACE_S + 5
_BETWEEN_STARTS_S = 0.5  # a worker that can't start shall not take all of the processor
_log = logging.getLogger(__name__)


def serve_by_workers(number: int, listener: socket.socket, shadows: Sequence[str], behind_proxy: bool) -> None:
    """Until Ctrl-C or TERM, which end all of them, after the answers that are on their way."""
    logging.config.dictConfig(uvicorn_options(behind_proxy)["log_config"])
    workers: list[SpawnProcess] = []

    def start(place: int) -> None:
        with _undisturbed():  # a worker that was started is one that will be ended
            worker = multiprocessing.get_context("spawn").Process(target=work, args=(listener, shadows, behind_proxy))
            worker.start()
            workers[place : place + 1] = [worker]

    handle_interrupts(also_ignored=True)  # as a shell does with what it starts in the background
    try:
        resource_tracker.ensure_running()  # now, since its start would let signals through in the middle of another
        for place in range(number):
            start(place)
        while True:
            wait([worker.sentinel for worker in workers])
            time.sleep(_BETWEEN_STARTS_S)
            for place, worker in enumerate(workers):
                if worker.exitcode is not None:
                    _log.error("worker %s has ended (%s); another one takes its place", worker.pid, worker.exitcode)
                    start(place)
    except KeyboardInterrupt:  # TERM is one, too
        pass
    finally:
        _end(workers)


def work(listener: socket.socket, shadows: Sequence[str], behind_proxy: bool) -> None:
    """What one worker does. The parent has seen that a service can be made, so what fails here may be over soon."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()
    import uvicorn

    from tipbench.recommender.service.app import serving_server
    from tipbench.web.server import Server

    options = uvicorn_options(behind_proxy)
    logging.config.dictConfig(options["log_config"])
    try:
        app = serving_server(Settings(), shadows)
    except (TipbenchError, OSError) as error:
        _log.error("a worker can't start: %s", error)
        sys.exit(1)
    Server(uvicorn.Config(app, **options)).run(sockets=[listener])


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals wait until it is over; a process that is started meanwhile has them wait as well."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end(workers: Sequence[SpawnProcess]) -> None:
    with _undisturbed():
        for worker in workers:
            worker.terminate()
        deadline = time.monotonic() + _PATIENCE_S
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.exitcode is None:
                _log.error("worker %s did not end in %s s, and was killed", worker.pid, _PATIENCE_S)
                worker.kill()
                worker.join()


def _end_with_parent() -> None:
    """A parent that is killed can't end its workers: they end at once, as it did, and leave the port to the next one.

    What was answered is stored; what was not is asked again.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
