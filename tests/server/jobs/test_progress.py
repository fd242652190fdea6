"""The progress file: the same when it is read back, and whole at every moment."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tipbench.server.jobs.progress import FailedCell, Progress, read_progress

WRITE_ALL_THE_TIME = """
import sys
from pathlib import Path
from tipbench.server.jobs.progress import FailedCell, Progress
for number in range(10**9):
    failures = tuple(FailedCell("cell", "x" * 300) for _ in range(number % 21))
    Progress("collect", cells=number, done=number, failures=failures).write(Path(sys.argv[1]))
"""


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    told = Progress(
        phase="collect",
        message="a \x1b[31m red\nword \ud800",
        experiment="tip-bench-ä",
        cells=24,
        done=3,
        failed=1,
        current="m × v1 × s",
        eta_s=2.5,
        failures=(FailedCell("m × v1 × s", "the runner died"),),
    )
    told.write(tmp_path / "p.json")
    assert read_progress(tmp_path / "p.json") == told
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "3", '{"failures": 3}', '{"failures": [{}]}', '{"failures": [], "x": 1}']
)
def test_a_file_that_is_not_ours_tells_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "p.json").write_text(content)
    assert read_progress(tmp_path / "p.json") is None
    assert read_progress(tmp_path / "gone.json") is None


def test_it_is_whole_whenever_one_looks(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    with subprocess.Popen([sys.executable, "-c", WRITE_ALL_THE_TIME, str(path)], env=os.environ) as writer:
        try:
            deadline = time.monotonic() + 20
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            seen = [read_progress(path) for _ in range(3000)]
        finally:
            writer.kill()
    assert None not in seen
    assert all(one and one.cells == one.done and len(one.failures) == one.cells % 21 for one in seen)
    assert len({one.cells for one in seen if one}) > 10, "it was being written meanwhile"


def test_what_can_not_be_written_leaves_nothing_beside_it(tmp_path: Path) -> None:
    taken = tmp_path / "progress.json"
    taken.mkdir()
    with pytest.raises(IsADirectoryError):
        Progress().write(taken)
    assert list(tmp_path.iterdir()) == [taken]
