"""Where workers keep results: a plan names the place, and each worker has its own credentials for it."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tipbench.airflow.planning import TaskLog, shared_address, shared_bench
from tipbench.bench.options import make_options
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings


class AskedServer(HTTPServer):
    """Keeps who asked; has nothing to tell."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.who: list[str | None] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: AskedServer

    def do_GET(self) -> None:
        self.server.who.append(self.headers["Authorization"])
        content = b'{"error_code": "RESOURCE_DOES_NOT_EXIST"}'
        self.send_response(404)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[AskedServer]:
    with AskedServer() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def asked(url: str | None, own: str, server: AskedServer) -> str:
    """The address that was used; the server knows by whom."""
    settings = Settings({"MLFLOW_TRACKING_URI": own})
    with shared_bench(make_options({"mlflow_url": url} if url else {}), settings, TaskLog(print)) as bench:
        bench.store.find_experiment("any")
        return bench.store.address


def test_a_worker_has_its_own_credentials_for_the_place_that_was_planned(server: AskedServer) -> None:
    own = f"http://me:s3cret@{server.host}"
    planned = asked(None, own, server)
    assert planned == f"http://{server.host}", "what others read holds no password"
    asked(planned, own, server)
    assert server.who[0] == server.who[1] == "Basic bWU6czNjcmV0"


def test_no_credentials_are_sent_to_another_place(server: AskedServer) -> None:
    asked(f"http://{server.host}", "http://me:s3cret@elsewhere:5000", server)
    assert server.who == [None]


def test_a_file_that_only_one_worker_has_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"sqlite:///m\.db is not visible to every worker"):
        shared_address("sqlite:///m.db", Settings({}))
