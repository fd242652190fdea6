"""One at a time: the second waits, or is told why not."""

import fcntl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tipbench.core.errors import LockTaken
from tipbench.core.locks import TimedLock, WouldWait, exclusive, lock_until, no_waiting

HOLD = (
    "import sys; from pathlib import Path; from tipbench.core.locks import exclusive\n"
    "with exclusive(Path(sys.argv[1]), 'x', True, print): print('held', flush=True); sys.stdin.read()"
)


@contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def test_whoever_will_not_wait_is_told_what_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "a.lock"
    with (
        held_elsewhere(path),
        pytest.raises(LockTaken, match="another one is at it; without --no-wait"),
        exclusive(path, "another one is at it", False, print),
    ):
        raise AssertionError("the turn was another's")


def test_whoever_waits_is_told_and_gets_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    said: list[str] = []
    with held_elsewhere(path) as other:

        def say(text: str) -> None:
            said.append(text)
            other.kill()

        with exclusive(path, "another one is at it", True, say) as lock:
            lock.write("mine")
    assert said == ["Another one is at it; waiting until it is done (Ctrl-C to stop) …"]
    assert path.read_text() == "mine"


def test_a_lock_that_is_given_back_in_time_is_had(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as holder, path.open() as waiter:
        fcntl.flock(holder, fcntl.LOCK_EX)
        threading.Timer(0.1, lambda: fcntl.flock(holder, fcntl.LOCK_UN)).start()
        assert lock_until(waiter.fileno(), time.monotonic() + 20)
        with pytest.raises(BlockingIOError):
            fcntl.flock(holder, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_one_that_is_not_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as holder, path.open() as waiter:
        fcntl.flock(holder, fcntl.LOCK_EX)
        assert not lock_until(waiter.fileno(), time.monotonic() + 0.1, shared=True)


def test_a_thread_that_must_not_wait_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    path = tmp_path / "lock"
    with path.open("w") as holder, path.open() as waiter:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with no_waiting(), pytest.raises(WouldWait):
            lock_until(waiter.fileno(), time.monotonic() + 20)
        fcntl.flock(holder, fcntl.LOCK_UN)
        with no_waiting():
            assert lock_until(waiter.fileno(), time.monotonic() + 20)
    assert not pauses


def test_a_thread_that_has_a_timed_lock_may_take_it_again_and_others_are_told() -> None:
    lock = TimedLock(0.05, lambda: TimeoutError("somebody has it"))
    failures: list[str] = []

    def other() -> None:
        try:
            with lock:
                failures.append("had it")
        except TimeoutError as error:
            failures.append(str(error))

    with lock, lock:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert failures == ["somebody has it"]
    with lock:
        pass
