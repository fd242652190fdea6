"""Lines are taken out of a log while others write to it and read it; every other line stays, once."""

import fcntl
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

from tests.recommender.making import Clock
from tests.recommender.served_events import Clock as Seconds
from tests.recommender.served_events import Serving, source, tip
from tipbench.core.paths import signals_folder
from tipbench.recommender.log import rewriting
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.recommender.log.rewriting import count_lines, exclusive_logs, remove_lines
from tipbench.recommender.log.segmented_log import SegmentLog, entries, segments
from tipbench.recommender.replay.rounds import load_rounds
from tipbench.recommender.user_traces import lines_of


def has_3(line: bytes) -> bool:
    return b":3" in line


def log_of(folder: Path, *numbers: int) -> SegmentLog:
    log = SegmentLog(folder, Clock())
    for number in numbers:
        log.append({"number": number})
    return log


def numbers(folder: Path) -> list[int]:
    return [entry["number"] for entry in entries(folder)]


def test_other_lines_stay_in_their_order_and_a_name_never_stands_for_other_content(tmp_path: Path) -> None:
    log_of(tmp_path, 1, 3, 2).close()
    log_of(tmp_path, 4).close()
    log_of(tmp_path, 3, 3).close()
    names = [path.stem for path in segments(tmp_path)]
    assert (count_lines(tmp_path, has_3), remove_lines(tmp_path, has_3), count_lines(tmp_path, has_3)) == (3, 3, 0)
    assert numbers(tmp_path) == [1, 2, 4]
    assert [path.stem for path in segments(tmp_path)] == [f"{names[0]}~1", names[1]]
    assert remove_lines(tmp_path, lambda line: b":1" in line) == 1
    assert sorted(path.stem for path in tmp_path.iterdir()) == [f"{names[0]}~2", names[1]]


def test_a_process_that_writes_goes_on_in_another_file(tmp_path: Path) -> None:
    log = log_of(tmp_path, 1, 3)
    assert remove_lines(tmp_path, has_3) == 1
    log.append({"number": 4})
    assert numbers(tmp_path) == [1, 4]
    again = log_of(tmp_path, 5)  # in the same second
    log.close()
    again.close()
    assert sorted(numbers(tmp_path)) == [1, 4, 5]


def test_no_line_is_lost_or_doubled_while_processes_write(tmp_path: Path) -> None:
    """Each writer has a segment of its own, as each process has."""
    logs, written = [SegmentLog(tmp_path, Clock(), full_bytes=3000) for _ in range(3)], 400

    def write(log: SegmentLog, writer: int) -> None:
        for number in range(written):
            log.append({"writer": writer, "number": number, "user_id": f"u{number % 4}"})

    threads = [threading.Thread(target=write, args=(log, writer)) for writer, log in enumerate(logs)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        remove_lines(tmp_path, lines_of("u3"))
    remove_lines(tmp_path, lines_of("u3"))
    for log in logs:
        log.close()
    found = Counter((entry["writer"], entry["number"]) for entry in entries(tmp_path))
    assert found == Counter((writer, number) for writer in range(3) for number in range(written) if number % 4 != 3)


def test_as_soon_as_the_next_version_is_there_it_counts_and_before_it_does_not(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = signals_folder(home)
    log_of(folder, 1, 3).close()
    [path] = segments(folder)
    with monkeypatch.context() as killed:
        killed.setattr(os, "replace", lambda *_: 1 / 0)
        killed.setattr("tipbench.core.files._remove", lambda _: None)
        with pytest.raises(ZeroDivisionError):
            remove_lines(folder, has_3)
    assert (numbers(folder), len(list(folder.iterdir()))) == ([1, 3], 2)
    with monkeypatch.context() as killed:
        killed.setattr(Path, "unlink", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            remove_lines(folder, has_3)
    assert (numbers(folder), path.exists()) == ([1], True)
    with exclusive_logs(home, lambda _: None):
        assert (numbers(folder), len(list(folder.iterdir()))) == ([1], 1)


def test_readers_start_over(tmp_path: Path) -> None:
    one, reader = Serving(tmp_path, Seconds()), RewardStatisticsReader(tmp_path / "decisions")
    for user in ("u1", "u2", "u10"):
        one.serve(user, "e1", [tip(1, source(1))])
        one.reward(user, "e1", 0.5)
    assert len(reader.read().source) == 3
    assert remove_lines(one.log, lines_of("u1")) == 2
    assert len(reader.read().source) == 2
    one.serve("u2", "e2", [tip(1, source(1))])
    assert len(reader.read().source) == 3
    rounds = load_rounds(one.log, for_weights=False)
    remove_lines(one.log, lines_of("u2"))
    with pytest.raises(Exception, match="was removed or rewritten while the log was read; try again"):
        list(rounds.read(rounds.users >= 0))


@pytest.mark.parametrize(
    ("line", "is_theirs"),
    [
        (b'{"kind":"reward","user_id":"u1","event_id":"e"}\n', True),
        (b'{"kind":"reset","user_id":"u1","policies":[]}\n', True),
        (b'{"kind":"decision","request":{"user_id":"u1"}}\n', True),
        (b'{"kind":"decision","request":{"user_id":"u10"},"chosen":"u1"}\n', False),
        (b'{"kind":"reward","user_id":"u10","event_id":"u1"}\n', False),
        (b'{"kind":"decision","request":{"user_id":"u1', True),
        (b'{"kind":"decision","request":{"user_id":"u10"', False),
        (b'{"user_id":"u1" damaged}\n', False),
    ],
)
def test_whose_a_line_is(line: bytes, is_theirs: bool) -> None:
    assert lines_of("u1")(line) == is_theirs
    assert lines_of("u1", resets=False)(line) == (is_theirs and b"reset" not in line)


def test_a_torn_line_goes_with_its_user_or_stays_as_it_is(tmp_path: Path) -> None:
    log_of(tmp_path, 1).close()
    [path] = segments(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content + b'{"user_id":"u10')
    remove_lines(tmp_path, lines_of("u1"))
    assert path.read_bytes() == content + b'{"user_id":"u10'
    remove_lines(tmp_path, lines_of("u10"))
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [content]


def test_nobody_waits_for_ever_for_a_process_that_is_frozen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(tmp_path, 3)
    monkeypatch.setattr(rewriting, "LOCK_TIMEOUT_S", 0.05)
    monkeypatch.setattr("tipbench.recommender.log.segmented_log.LOCK_TIMEOUT_S", 0.05)
    with segments(tmp_path)[0].open() as frozen:
        fcntl.flock(frozen, fcntl.LOCK_EX)
        for act in (lambda: remove_lines(tmp_path, has_3), lambda: log.append({"number": 4})):
            with pytest.raises(OSError, match="check whether a process hangs"):
                act()
    log.append({"number": 5})
    assert numbers(tmp_path) == [3, 5]
