"""One at a time: the second waits, or is told why not."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tipbench.errors import TurnTaken
from tipbench.turns import turn

HOLD = (
    "import sys; from pathlib import Path; from tipbench.turns import turn\n"
    "with turn(Path(sys.argv[1]), 'x', True, print): print('held', flush=True); sys.stdin.read()"
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
        pytest.raises(TurnTaken, match="another one is at it; without --no-wait"),
        turn(path, "another one is at it", False, print),
    ):
        raise AssertionError("the turn was another's")


def test_whoever_waits_is_told_and_gets_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    said: list[str] = []
    with held_elsewhere(path) as other:

        def say(text: str) -> None:
            said.append(text)
            other.kill()

        with turn(path, "another one is at it", True, say) as lock:
            lock.write("mine")
    assert said == ["Another one is at it; waiting until it is done (Ctrl-C to stop) …"]
    assert path.read_text() == "mine"
