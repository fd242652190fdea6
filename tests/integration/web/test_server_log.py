"""What a real server logs: no query, no header, no token, and nothing that a terminal would act on."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx

SERVE = """
import resource
import socket
import sys
from pathlib import Path
import uvicorn
from tests.web.small_app import make_site
from tipbench.web.log import log_config
site = make_site(Path(sys.argv[1]))
def fail():
    raise RuntimeError("told by a model: \\x1b[2J")
site.app.add_api_route("/api/fails", fail)
listener = socket.create_server(("127.0.0.1", 0))
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]),) * 2)
print(site.admin, listener.getsockname()[1], flush=True)
config = uvicorn.Config(site.app, log_config=log_config(), server_header=False, proxy_headers=False)
uvicorn.Server(config).run(sockets=[listener])
"""


@contextmanager
def _served(home: Path, log: Path, handles: int = 1000) -> Iterator[tuple[str, str]]:
    """A server of its own process, with so many file handles: its address and its admin token."""
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", SERVE, str(home), str(handles)], stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            token, port = process.stdout.readline().split()
            yield f"http://127.0.0.1:{port}", token
        finally:
            process.terminate()


def test_a_line_a_request_but_for_mere_reading_and_no_secret_in_it(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with _served(home, log) as (address, token), httpx.Client(base_url=address) as client:
        auth = {"Authorization": f"Bearer {token}"}
        assert client.get("/api/things?token=in-the-query", headers=auth).status_code == 200
        assert client.get("/health?x=in-the-query").headers.get("server") is None
        assert client.post("/login", data={"token": token}).status_code == 403
        posted = client.post("/login", data={"token": token, "next": "/x"}, headers={"Origin": address})
        assert posted.status_code == 303
        cookie = posted.headers["set-cookie"].split(";")[0]
        assert client.get("/api/fails", headers=auth).status_code == 500
        assert client.get("/a%0Aforged line", headers=auth).status_code == 400
        bad = {"Authorization": "Bearer a-wrong-token"}
        assert client.get("/static/%2e%2e/api/things", headers=bad).status_code == 400
    text = log.read_text()
    lines = [line.split(" INFO ")[1].rsplit(" ", 2)[0] for line in text.splitlines() if line.endswith(" ms")]
    assert lines[:3] == [
        "POST /login 403",
        "POST /login 303",
        "GET /api/fails 500",
    ]
    assert lines[3] == "GET /a forged line 400"
    assert "Traceback" in text
    assert r"told by a model: \u001b[2J" in text
    for secret in (token, "in-the-query", cookie, "a-wrong-token", "\x1b"):
        assert secret not in text


def test_a_server_without_file_handles_turns_away_new_clients_and_does_not_fill_its_log(
    home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with _served(home, log, handles=40) as (address, _):
        with ExitStack() as sockets:
            place = ("127.0.0.1", int(address.rpartition(":")[2]))
            for _ in range(60):
                last = sockets.enter_context(socket.create_connection(place, timeout=10))
            with suppress(ConnectionError):
                assert last.recv(1) == b""  # closed at once
        for _ in range(100):
            try:
                assert httpx.get(f"{address}/health").status_code == 200
                break
            except httpx.TransportError:
                time.sleep(0.05)  # until it has noticed that they are gone
        else:
            raise AssertionError("it does not answer again")
    assert len(log.read_text().splitlines()) < 5
