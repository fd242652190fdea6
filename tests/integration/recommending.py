"""Starts `tipbench recommend serve` as a user does, and ends it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil

from tests.integration.serving import Served

KEY = "a-serving-key-for-tests-only"
HEADERS = {"Authorization": f"Bearer {KEY}"}


class Recommending(Served):
    """A running service."""

    def __init__(self, *flags: str, program: str = "tipbench", **environment: str) -> None:
        settings = {"TIPBENCH_SERVING_KEY": KEY, **environment}
        super().__init__(*flags, command=("recommend", "serve"), program=program, **settings)

    def workers(self) -> list[psutil.Process]:
        """Those that live; a parent has one more child, which looks after their semaphores."""
        children = psutil.Process(self.pid).children()
        return [one for one in children if one.status() != psutil.STATUS_ZOMBIE and "spawn_main" in _words(one)]

    def client(self, token: str = KEY) -> httpx.Client:
        return super().client(token)


@contextmanager
def recommending(
    *flags: str, by: signal.Signals = signal.SIGINT, program: str = "tipbench", **environment: str
) -> Iterator[Recommending]:
    """Ended by that signal."""
    served = Recommending(*flags, program=program, **environment)
    try:
        yield served
    finally:
        logged = served.end(by)
        assert "Traceback" not in logged, logged


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.ZombieProcess:
        return ""
