"""Main module of the child process: serves MLflow's app on a unix socket until the parent process has ended.

    python -m tipbench.bench.tracking.mlflow_process_main SOCKET     (configured by MLflow's environment variables)

`mlflow server` would wrap the serving process in a second one: twice the memory and startup time.
"""

import os
import shutil
import socket
import sys
from pathlib import Path

from tipbench.core.processes import when_parent_ends

_KEEP_ALIVE_S = 75  # longer than our client's, or a request could hit a connection that is just being closed


def main(path: Path) -> None:
    """Serve until standard input is closed, which happens however the parent process ends."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))  # before the parent's end can remove the socket
    when_parent_ends(lambda: _end(path.parent))
    import uvicorn

    config = uvicorn.Config(
        "mlflow.server.fastapi_app:app",
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # forwarded headers about a request's origin are not trusted
        timeout_keep_alive=_KEEP_ALIVE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _end(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # immediately; SQLite rolls back what is not committed


if __name__ == "__main__":
    main(Path(sys.argv[1]))
