"""Workers that can't start, and Ctrl-C while they do."""

import multiprocessing
import signal

import pytest

from tests.integration.recommending import recommending
from tipbench.cli.listening import open_listener
from tipbench.cli.recommend.workers import worker_main
from tipbench.web.counters import SharedCounters
from tipbench.web.server import WorkerConnections


def test_a_worker_that_can_not_start_says_why_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TIPBENCH_STATE", "parchment")
    with open_listener("127.0.0.1", 0) as listener:
        worker = multiprocessing.get_context("spawn").Process(
            target=worker_main, args=(listener, (), False, SharedCounters(), WorkerConnections([0], 0))
        )
        worker.start()
        worker.join(60)
    assert worker.exitcode == 1
    told = capfd.readouterr().err
    assert "a worker can't start" in told
    assert "parchment" in told
    assert "Traceback" not in told
    worker.close()


def test_ctrl_c_while_workers_start_is_no_traceback() -> None:
    with recommending("--workers", "3") as served:
        for worker in served.workers():  # a terminal tells all of them
            worker.send_signal(signal.SIGINT)


def test_a_shell_that_ignores_ctrl_c_in_the_background_does_not_keep_it_alive() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is ignored stays so in a new process
    try:
        with recommending("--workers", "2") as served, served.client() as client:
            assert client.get("/health").status_code == 200
    finally:
        signal.signal(signal.SIGINT, before)
