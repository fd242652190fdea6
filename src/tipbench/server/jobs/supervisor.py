"""The process between the server and a run: it limits the size of the run's log and records how the run ended.

Started as `python -m tipbench.server.jobs.supervisor JOBFOLDER PROGRAM ARGUMENT…`, as the leader of its own process
group. It survives the server. It imports little besides the standard library, since there is one for every job.
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
LOG_BYTES = 1_000_000  # limit for each of the two log files
PIDS = "pids.json"
EXIT = "exit.json"
_CHUNK = 65_536
_DRAIN_S = 1.0  # time to read the rest of the pipe, which a program left behind by the run may hold open


def supervise(folder: str, command: Sequence[str]) -> None:
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: signals.append(received))  # the run gets it too and ends
    _write(folder, PIDS, {"supervisor": os.getpid()})
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    )
    _write(folder, PIDS, {"supervisor": os.getpid(), "child": child.pid})
    if signals:  # one came before the run had started
        child.terminate()
    assert child.stdout is not None
    copier = threading.Thread(target=copy_bounded, args=(child.stdout.fileno(), folder), daemon=True)
    copier.start()
    status = child.wait()
    copier.join(_DRAIN_S)
    _write(folder, EXIT, {"status": status, "ended_ms": round(time.time() * 1000)})
    os._exit(0)  # without waiting for the copier thread


def copy_bounded(source: int, folder: str, limit: int = LOG_BYTES) -> None:
    """Copy `source` to the log until its end. A full log replaces the older one, so the last output is stored."""
    log, older = os.path.join(folder, LOG), os.path.join(folder, OLDER_LOG)  # noqa: PTH118 - fast startup
    target = _open(log)
    remaining = limit - os.fstat(target).st_size
    while chunk := os.read(source, min(_CHUNK, limit)):
        try:
            if len(chunk) > remaining:
                os.replace(log, older)  # noqa: PTH105
                full, target, remaining = target, _open(log), limit
                os.close(full)
            _write_all(target, chunk)
        except OSError:  # disk full: the run must not block on its log
            continue
        remaining -= len(chunk)


def _open(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _write_all(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


def _write(folder: str, name: str, data: dict[str, int]) -> None:
    atomic_write(os.path.join(folder, name), json.dumps(data), mode=PRIVATE, sole_writer=True)  # noqa: PTH118


if __name__ == "__main__":
    supervise(sys.argv[1], sys.argv[2:])
