"""What runs in the child process: MLflow's app on a unix socket, until whoever started it is gone.

    python -m tipbench.server.mlflow_pages.server_main SOCKET     (configured by MLflow's environment variables)

`mlflow server` would be a second process around the one that serves: twice the memory and the time to start.
"""

import os
import shutil
import socket
import sys
from pathlib import Path

from tipbench.core.processes import when_parent_ends

_KEEP_ALIVE_S = 75  # longer than our side keeps a connection, or a request would meet one that is just being closed


def main(path: Path) -> None:
    """Serves until its standard input ends, which it does however the starting process ended."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))  # before anybody can ask for the end, which takes the socket away
    when_parent_ends(lambda: _end(path.parent))
    import uvicorn

    config = uvicorn.Config(
        "mlflow.server.fastapi_app:app",
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # nobody's word about where a request comes from is taken
        timeout_keep_alive=_KEEP_ALIVE_S,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _end(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)  # at once: what SQLite has not committed, it takes back


if __name__ == "__main__":
    main(Path(sys.argv[1]))
