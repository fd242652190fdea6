"""The simulation's own process, by itself: how it ends."""

import subprocess
import sys
from pathlib import Path

from pydantic_core import from_json, to_json

from tests.recommender.simulation.worlds import a_request


def _ended(folder: Path) -> tuple[int, bytes, bytes]:
    """Its exit status, its last line and what it said otherwise, while its starter is there."""
    asked = {"request": a_request().model_dump(mode="json"), "workers": 1, "folder": str(folder)}
    command = [sys.executable, "-m", "tipbench.recommender.simulation.worker_main"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as child:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        child.stdin.write(to_json(asked) + b"\n")
        child.stdin.flush()
        *_, last = child.stdout
        return child.wait(60), last, child.stderr.read()


def test_it_ends_by_itself_and_in_order(tmp_path: Path) -> None:
    status, last, said = _ended(tmp_path / "own")
    assert (status, said) == (0, b"")
    assert "result" in from_json(last)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    status, last, said = _ended(tmp_path / "gone" / "own")
    assert (status, said) == (0, b"")
    why = f"the simulation failed: No such file or directory: {tmp_path}/gone/own; fix that and start it again"
    assert from_json(last) == {"failed": why}
