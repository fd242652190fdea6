"""A simulation in a process of its own: what comes back, and what goes wrong."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from tests.recommender.simulation.worlds import a_request
from tipbench.core.errors import InvalidInput, SimulationFailed
from tipbench.recommender.simulation import subprocess_runner as apart
from tipbench.recommender.simulation.subprocess_runner import simulate_in_subprocess

_ASK = "import sys, json, os, time; asked = json.loads(sys.stdin.readline()); os.mkdir(asked['folder']); "


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def _instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(apart, "_CHILD", (sys.executable, "-c", _ASK + code))


def _silent(done: int, of: int) -> None:
    pass


def test_progress_and_a_result_and_nothing_left(scratch: Path) -> None:
    told: list[tuple[int, int]] = []
    found = simulate_in_subprocess(a_request(), 2, 60, lambda done, of: told.append((done, of)))
    assert told == [(number, 6) for number in range(1, 7)]
    assert set(found["overall"]) == {"egreedy", "egreedy/v2"}
    assert "gate" not in found
    assert list(scratch.iterdir()) == []


def test_a_gate_has_a_verdict() -> None:
    found = simulate_in_subprocess(a_request("egreedy/v2", "egreedy", kind="gate", seeds=10, steps=5), 1, 60, _silent)
    assert len(found["gate"]["conditions"]) == 8
    assert len(found["plan"]["arms"]) == 6


def test_what_can_not_be_done_is_refused_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_CHILD", ("/nowhere",))
    with pytest.raises(InvalidInput, match="no policy 'nobody'"):
        simulate_in_subprocess(a_request("nobody"), 1, 60, _silent)


def test_too_slow(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch, "time.sleep(60)")
    with pytest.raises(SimulationFailed, match=r"took more than 0\.3 s; give it more with --timeout"):
        simulate_in_subprocess(a_request(), 1, 0.3, _silent)
    assert list(scratch.iterdir()) == []


def test_what_it_said_before_it_died_is_shown(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch, r"sys.exit('x' * 5000 + ' no \x1b[31mmemory')")
    with pytest.raises(SimulationFailed, match=r"ended without a result: x+ no \\u001b\[31mmemory$") as failed:
        simulate_in_subprocess(a_request(), 1, 60, _silent)
    assert len(str(failed.value)) < 2200
    assert list(scratch.iterdir()) == []


def test_killed_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch, "os.kill(os.getpid(), 9)")
    with pytest.raises(SimulationFailed, match="without a result: signal 9 ended it"):
        simulate_in_subprocess(a_request(), 1, 60, _silent)


def test_killed_in_the_middle_of_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch, r"""sys.stdout.write('{"result": {"half": '); sys.stdout.flush(); os.kill(os.getpid(), 9)""")
    with pytest.raises(SimulationFailed, match="signal 9 ended it"):
        simulate_in_subprocess(a_request(), 1, 60, _silent)


def test_a_question_that_nobody_reads_is_not_asked_again() -> None:
    """What stays in the buffer would be tried once more when the pipe is closed, and fail there."""
    reads, writes = os.pipe()
    os.close(reads)
    asked = os.fdopen(writes, "wb")
    apart._send_request(asked, b"a short question")
    asked.close()


def test_it_ends_before_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_CHILD", (sys.executable, "-c", "import sys; sys.stdin.close(); sys.exit(3)"))
    with pytest.raises(SimulationFailed, match="its exit status is 3"):
        simulate_in_subprocess(a_request(), 1, 60, _silent)


def test_a_result_as_large_as_it_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch, "print(json.dumps({'result': {'long': 'x' * 20_000_000}}), flush=True); time.sleep(60)")
    assert len(simulate_in_subprocess(a_request(), 1, 60, _silent)["long"]) == 20_000_000


@pytest.mark.parametrize(("word", "error"), [("refused", InvalidInput), ("failed", SimulationFailed)])
def test_what_it_tells(monkeypatch: pytest.MonkeyPatch, word: str, error: type[Exception]) -> None:
    _instead(monkeypatch, f"print(json.dumps({{{word!r}: 'for a reason'}}), flush=True); time.sleep(60)")
    with pytest.raises(error, match="for a reason"):
        simulate_in_subprocess(a_request(), 1, 60, _silent)


def test_whoever_is_told_of_progress_may_give_up(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _instead(monkeypatch, "print(json.dumps({'done': 1, 'of': 2}), flush=True); time.sleep(60)")

    def give_up(done: int, of: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate_in_subprocess(a_request(), 1, 60, give_up)
    assert list(scratch.iterdir()) == []
