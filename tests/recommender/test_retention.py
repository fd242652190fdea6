"""Lines are removed by their own time, not by their file's, and a kill brings no user back to the next prior."""

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.recommender.making import Clock, a_recommender, a_request, a_reward
from tipbench.core.errors import StateDamaged
from tipbench.core.paths import decisions_folder, recommender_folder
from tipbench.recommender.log.rewriting import exclusive_logs
from tipbench.recommender.log.segmented_log import SegmentLog, entries
from tipbench.recommender.replay.rounds import load_rounds
from tipbench.recommender.retention import Age, age_of, remove_expired

FIRST, LAST = 1_800_000_000_000, 1_800_000_002_000


def test_what_is_not_expired_stays_though_it_is_in_the_same_file(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, Clock())
    for at_ms in (5, 3, 4, 9):
        log.append({"at_ms": at_ms})
    assert age_of(tmp_path, 5) == Age(2, 5)
    remove_expired(tmp_path, 5)
    log.append({"at_ms": 10})
    log.close()
    assert [entry["at_ms"] for entry in entries(tmp_path)] == [5, 9, 10]
    remove_expired(tmp_path, 99)
    assert (list(tmp_path.iterdir()), age_of(tmp_path, 5)) == ([], Age(0, None))


def test_a_reset_goes_after_what_it_is_about(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, clock = recommender_folder(home), Clock(FIRST / 1000)
    recommender = a_recommender(folder, clock)
    recommender.score("egreedy", a_request("e1"))
    recommender.reset("u1")
    other = a_recommender(folder, clock)  # another process, with a file that comes later
    other.score("egreedy", a_request("e2"))
    other.reward("egreedy", a_reward("e2"))
    clock.now += 1
    recommender.reset("u1")
    recommender.close()
    other.close()
    for step in itertools.count():
        copy = tmp_path / str(step)
        shutil.copytree(folder, recommender_folder(copy))
        left = itertools.count(step, -1)

        def unlink(path: Path, left: Iterator[int] = left) -> None:
            if not next(left):
                raise Killed
            os.unlink(path)  # noqa: PTH108

        with monkeypatch.context() as killed, suppress(Killed), exclusive_logs(copy, lambda _: None):
            killed.setattr(Path, "unlink", unlink)
            remove_expired(decisions_folder(copy), LAST)
        assert len(load_rounds(decisions_folder(copy), for_weights=False)) == 0
        if not list(decisions_folder(copy).iterdir()):
            break
    assert step == 3


class Killed(BaseException):
    """Ends everything, as SIGKILL does."""


@pytest.mark.parametrize("line", ['{"at_ms": 1\n', '{"number": 1}\n', '{"at_ms": "x"}\n', "[]\n"])
def test_a_line_whose_time_can_not_be_told_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    with pytest.raises(StateDamaged, match=r"a\.jsonl"):
        age_of(tmp_path, 5)
