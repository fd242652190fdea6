"""Two collections of one experiment at the same time, on one host or on two: every cell counts once."""

import signal
from pathlib import Path

import pytest

from tests.integration.collecting import (
    CELLS,
    all_and_counting,
    assert_two_hosts_at_once_count_once,
    collect_slowly,
    started,
)
from tests.integration.mlflow_server import MlflowServer

EXPERIMENT = "tip-bench-two"


@pytest.mark.timeout(120)
def test_on_one_host_the_second_waits_and_finds_everything_done(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    processes = [started(collect_slowly(tmp_path, url, EXPERIMENT, latency_s=0.1)) for _ in range(2)]
    said = []
    for process in processes:
        out, err = process.communicate()
        assert process.returncode == 0, err
        said.append(out + err)
    assert sum("another collection is filling experiment 'tip-bench-two'" in text.lower() for text in said) == 1
    assert sorted("24 stored before" in text for text in said) == [False, True]
    every, counting = all_and_counting(url, EXPERIMENT)
    assert len(every) == len(counting) == CELLS


@pytest.mark.timeout(120)
def test_whoever_would_not_wait_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    command = collect_slowly(tmp_path, url, EXPERIMENT, latency_s=0.1)
    first = started(command)
    assert first.stderr is not None
    first.stderr.readline()  # it is at work
    first.send_signal(signal.SIGSTOP)  # and stays so, however long the other takes to start
    second = started((*command, "--no-wait"))
    _, err = second.communicate()
    first.send_signal(signal.SIGCONT)
    first.communicate()
    assert (first.returncode, second.returncode) == (0, 2)
    assert "without --no-wait, this command would wait for it" in err
    assert len(all_and_counting(url, EXPERIMENT)[0]) == CELLS


@pytest.mark.timeout(240)
def test_on_two_hosts_the_older_answer_counts_and_the_later_is_tagged(mlflow: MlflowServer, tmp_path: Path) -> None:
    assert_two_hosts_at_once_count_once(tmp_path, mlflow.url)
