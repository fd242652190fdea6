"""Stands between the server and a run: keeps its log within bounds, and writes down how it ended.

Started as `python -m tipbench.server.jobs.supervisor JOBFOLDER PROGRAM ARGUMENT…`, as the leader of a process group of
its own. It goes on when the server dies. It imports little besides the standard library: there is one for every job.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from tipbench.core.files import PRIVATE, atomic_write

LOG = "log.txt"
OLDER_LOG = "log.1.txt"
LOG_BYTES = 1_000_000  # of each of the two
PIDS = "pids.json"
EXIT = "exit.json"
_CHUNK = 65_536
_LAST_WORDS_S = 1.0  # for what is still in the pipe; a program that the run left behind may hold it open


def supervise(folder: str, command: Sequence[str]) -> None:
    asked: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: asked.append(received))  # the run gets it too, and ends; we wait
    _write(folder, PIDS, {"supervisor": os.getpid()})
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    )
    _write(folder, PIDS, {"supervisor": os.getpid(), "child": child.pid})
    if asked:  # it came before there was a run
        child.terminate()
    assert child.stdout is not None
    copier = threading.Thread(target=copy_bounded, args=(child.stdout.fileno(), folder), daemon=True)
    copier.start()
    status = child.wait()
    copier.join(_LAST_WORDS_S)
    _write(folder, EXIT, {"status": status, "ended_ms": round(time.time() * 1000)})
    os._exit(0)  # whatever the copier still waits for


def copy_bounded(source: int, folder: str, limit: int = LOG_BYTES) -> None:
    """Copies until the end, into a file that becomes the older one when it is full, so that the last words are kept."""
    log, older = os.path.join(folder, LOG), os.path.join(folder, OLDER_LOG)  # noqa: PTH118 - quick to start
    target = _open(log)
    room = limit - os.fstat(target).st_size
    while chunk := os.read(source, min(_CHUNK, limit)):
        try:
            if len(chunk) > room:
                os.replace(log, older)  # noqa: PTH105
                full, target, room = target, _open(log), limit
                os.close(full)
            _write_all(target, chunk)
        except OSError:  # a full disk: the run must not wait for its log
            continue
        room -= len(chunk)


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def _write(folder: str, name: str, data: dict[str, int]) -> None:
    atomic_write(os.path.join(folder, name), json.dumps(data), mode=PRIVATE, sole_writer=True)  # noqa: PTH118


if __name__ == "__main__":
    supervise(sys.argv[1], sys.argv[2:])
