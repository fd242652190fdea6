"""MLflow's pages on a port, as the admin server mounts them but without its authentication.

    with served(MlflowPages(…)) as url: …

In a process of its own: ``python -m tests.integration.served_pages ADDRESS FOLDER``, which prints the URL.
"""

import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tipbench.core.settings import Settings
from tipbench.server.mlflow_pages.pages import MlflowPages


@contextmanager
def served(pages: MlflowPages) -> Iterator[str]:
    """In a thread, until the block is left."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = _server(pages)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            deadline = time.monotonic() + 30
            while not server.started and thread.is_alive() and time.monotonic() < deadline:
                time.sleep(0.02)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mlflow"
        finally:
            server.should_exit = True
            thread.join()


def _server(pages: MlflowPages) -> uvicorn.Server:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await pages.close()

    app = Starlette(routes=[Mount("/mlflow", pages)], lifespan=lifespan)
    return uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=2))


def mlflow_servers(parent: int | None = None) -> list[psutil.Process]:
    """MLflow's servers that this process, or another one, has started."""
    return [child for child in psutil.Process(parent).children() if "mlflow_process_main" in _command(child)]


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # or it is a zombie, that nobody has asked after yet
        return ""


def wait_until(found_by: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := found_by()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return found


def main() -> None:
    address, folder = sys.argv[1:]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mlflow", flush=True)
        _server(MlflowPages(address, Path(folder), Settings())).run(sockets=[listening])


if __name__ == "__main__":
    main()
