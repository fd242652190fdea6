"""Ctrl-C and TERM, once, twice and three times: every command ends, and soon; nothing that was stored is lost."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.integration.command import tipbench
from tests.integration.server.jobs.running import until

ENDS = (signal.SIGINT, signal.SIGTERM)
SECONDS = 30.0  # to find what hangs, also on a busy machine; how quick it is, benchmarks.interrupts measures


@pytest.fixture
def collection(tmp_path: Path) -> tuple[str, ...]:
    """A run of 24 cells at 20 a second, or so."""
    script = tmp_path / "slow.yaml"
    script.write_text(yaml.safe_dump({"parameters": 1_000_000, "latency_s": 0.05}))
    return (
        *("--models", f"scripted/{script}", "--experiment", "tip-bench-x"),
        *("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}"),
    )


def started(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tipbench", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupted(process: "subprocess.Popen[str]", by: list[signal.Signals], apart_s: float) -> tuple[int, str]:
    """Its exit status and what it said, once it has ended; it has half a minute."""
    for each in by:
        process.send_signal(each)
        time.sleep(apart_s)
    try:
        _, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"it did not end within {SECONDS:g} s: {process.communicate()[1]}") from None
    return process.returncode, err


@pytest.mark.timeout(200)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_run_ends_and_the_same_command_goes_on(times: int, collection: tuple[str, ...], tmp_path: Path) -> None:
    chance = random.Random(times)
    progress = tmp_path / "progress.json"
    for _ in range(2):
        progress.unlink(missing_ok=True)
        process = started("run", *collection, "--judge", "lexical", "--progress", str(progress))
        until(lambda: progress.exists() and json.loads(progress.read_text())["phase"] != "starting")
        time.sleep(chance.random() / 2)
        status, err = interrupted(process, chance.choices(ENDS, k=times), chance.choice((0, 0.002, 0.05)))
        assert status in (0, 130), err
        assert "Traceback" not in err
    done = tipbench("collect", *collection)
    assert done.status == 0, done.err
    found = json.loads(tipbench("compare", *collection[2:], "--format", "json").out)["cells"]
    assert found["judged"] + found["pending"] == 24


@pytest.mark.timeout(120)
@pytest.mark.parametrize("times", [2, 3])
def test_a_simulation_ends(times: int) -> None:
    process = started("sim", "run", "--policies", "egreedy", "--seeds", "200")
    time.sleep(0.5 + times / 4)
    status, err = interrupted(process, [signal.SIGINT] * times, 0.002)
    assert status == 130
    assert "Traceback" not in err


@pytest.mark.timeout(120)
@pytest.mark.parametrize("times", [2, 3])
def test_a_judge_that_hangs_is_not_waited_for(
    times: int, collection: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "judge is there"
    monkeypatch.setenv("TIPBENCH_JUDGE_COMMAND", f"/bin/sh -c 'touch \"{there}\"; sleep 60'")
    assert tipbench("collect", *collection, "--n-scenarios", "1").status == 0
    process = started("judge", *collection[2:], "--run", "command")
    until(there.exists)
    status, err = interrupted(process, [signal.SIGTERM] * times, 0.02)
    assert status == 130
    assert "Traceback" not in err


@pytest.mark.timeout(120)
@pytest.mark.parametrize("words", [("serve",), ("recommend", "serve"), ("recommend", "serve", "--workers", "2")])
def test_a_server_ends(words: tuple[str, ...]) -> None:
    process = started(*words, "--port", "0")
    assert process.stdout
    assert any("serves at" in line for line in process.stdout)
    status, err = interrupted(process, [signal.SIGTERM] * 2, 0.002)
    assert status in (0, 130), err
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [("serve",), ("recommend", "serve")], ids=" ".join)
def test_a_second_signal_does_not_break_off_a_servers_end(words: tuple[str, ...]) -> None:
    process = started(*words, "--port", "0")
    assert process.stdout
    until(lambda: "serves at" in process.stdout.readline())  # type: ignore[union-attr]
    time.sleep(0.3)
    status, err = interrupted(process, [signal.SIGTERM, signal.SIGINT], 0.002)
    assert status == 0
    assert "Traceback" not in err
    assert "has stopped" in err


def test_a_signal_while_python_ends_does_not_change_the_exit_status() -> None:
    """Python takes handlers away before a process is gone: TERM would kill what had done its work."""
    code = "from tipbench.cli.interrupts import handle_interrupts; handle_interrupts(); print(flush=True)"
    for number in range(24):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        time.sleep(0.0005 * (number % 12))
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        assert process.wait() != -signal.SIGTERM
