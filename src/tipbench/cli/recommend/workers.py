"""Worker processes of the service: they share one listening socket, and the parent replaces a worker that dies.

A worker imports what it needs only once it runs, so that it can be stopped from its start.
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
from typing import TYPE_CHECKING

from tipbench.cli.interrupts import handle_interrupts
from tipbench.cli.listening import GRACE_S, uvicorn_options
from tipbench.core.errors import TipbenchError
from tipbench.core.settings import Settings

if TYPE_CHECKING:
    from tipbench.web.counters import SharedCounters
    from tipbench.web.server import WorkerConnections

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOP_TIMEOUT_S = GRACE_S + 5
_RESTART_DELAY_S = 0.5  # so that a worker that can't start doesn't use up the processor
_log = logging.getLogger(__name__)


def serve_with_workers(count: int, listener: socket.socket, shadows: Sequence[str], behind_proxy: bool) -> None:
    """Serve until Ctrl-C or SIGTERM, which stop all workers once requests in flight are answered."""
    logging.config.dictConfig(uvicorn_options(behind_proxy)["log_config"])
    from tipbench.web.counters import SharedCounters
    from tipbench.web.server import WorkerConnections

    counters = SharedCounters(count)
    spawning = multiprocessing.get_context("spawn")
    connections = spawning.RawArray("i", count)
    workers: list[SpawnProcess] = []

    def start(index: int) -> None:
        with _signals_blocked():  # a worker that is started must be in the list, to be stopped
            shared = counters.of_process(index), WorkerConnections(connections, index)
            worker = spawning.Process(target=worker_main, args=(listener, shadows, behind_proxy, *shared))
            worker.start()
            workers[index : index + 1] = [worker]

    handle_interrupts(even_if_ignored=True)  # a shell ignores Ctrl-C for background processes
    try:
        resource_tracker.ensure_running()  # now: its start unblocks signals, which must not happen in `start`
        for index in range(count):
            start(index)
        while True:
            wait([worker.sentinel for worker in workers])
            time.sleep(_RESTART_DELAY_S)
            for index, worker in enumerate(workers):
                if worker.exitcode is not None:
                    _log.error("worker %s has ended (%s); starting another one", worker.pid, worker.exitcode)
                    start(index)
    except KeyboardInterrupt:  # SIGTERM raises it, too
        pass
    finally:
        _stop(workers)


def worker_main(
    listener: socket.socket,
    shadows: Sequence[str],
    behind_proxy: bool,
    counters: "SharedCounters",
    connections: "WorkerConnections",
) -> None:
    """Run one worker. The parent has checked that the service can start, so a failure here may be temporary."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent, which stops us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    threading.Thread(target=_exit_with_parent, name="end with parent", daemon=True).start()
    import uvicorn

    from tipbench.recommender.service.app import serving_server
    from tipbench.web.server import Server

    options = uvicorn_options(behind_proxy)
    logging.config.dictConfig(options["log_config"])
    try:
        app = serving_server(Settings(), shadows, counters=counters)
    except (TipbenchError, OSError) as error:
        _log.error("a worker can't start: %s", error)
        sys.exit(1)
    Server(uvicorn.Config(app, **options), connections).run(sockets=[listener])


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block the stop signals meanwhile; a process started within inherits the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop(workers: Sequence[SpawnProcess]) -> None:
    with _signals_blocked():
        for worker in workers:
            worker.terminate()
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        for worker in workers:
            worker.join(max(0.0, deadline - time.monotonic()))
            if worker.exitcode is None:
                _log.error("worker %s did not stop within %s s and was killed", worker.pid, _STOP_TIMEOUT_S)
                worker.kill()
                worker.join()


def _exit_with_parent() -> None:
    """Exit at once when the parent dies: a killed parent can't stop its workers, and the port must become free.

    What was answered is stored; clients retry the rest.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
