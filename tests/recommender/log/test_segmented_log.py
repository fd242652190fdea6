"""The append-only log."""

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest

from tests.recommender.making import Clock
from tipbench.core.errors import StateDamaged
from tipbench.core.files import seal
from tipbench.core.locks import try_lock
from tipbench.recommender.log import segmented_log
from tipbench.recommender.log.segmented_log import SegmentLog, entries, read_entries, segments


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_is_appended_is_read_in_order(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log", Clock())
    for number in range(100):
        log.append({"number": number, "text": "a\nb ü \u2028"})
    assert [entry["number"] for entry in entries(tmp_path / "log")] == list(range(100))  # before it is closed
    log.close()
    (path,) = (tmp_path / "log").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.name == f"20270115T080000-{os.getpid()}-0001.jsonl"


def test_nothing_is_made_before_there_is_something_to_keep(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log", Clock())
    log.close()
    assert not (tmp_path / "log").exists()
    assert list(entries(tmp_path / "log")) == []


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, Clock(), full_bytes=100)
    for number in range(20):
        log.append({"number": number, "filling": "x" * 20})
    log.append({"number": 20, "filling": "x" * 500})  # a line that is longer than a file is still a line
    log.close()
    assert len(list(tmp_path.iterdir())) == 11
    assert [entry["number"] for entry in entries(tmp_path)] == list(range(21))


def test_the_name_of_each_file_is_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = set[str]()
    monkeypatch.setattr("os.fsync", lambda file: synced.update(names(Path(f"/proc/self/fd/{file}"))))
    log = SegmentLog(tmp_path / "log", Clock(), full_bytes=100)
    for _ in range(3):
        log.append({"filling": "x" * 80})
    log.close()
    assert len(synced) == 3
    assert synced == names(tmp_path / "log")


def test_all_segments_are_synced_by_threads_that_nobody_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = dict[str, str]()

    def sync(file: int) -> None:
        synced[Path(f"/proc/self/fd/{file}").readlink().name] = threading.current_thread().name

    monkeypatch.setattr(segmented_log, "_SYNC_INTERVAL_S", 0.0)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(f"os.{name}", sync)
    log = SegmentLog(tmp_path / "log", Clock(), full_bytes=100)
    for number in range(5):
        log.append({"filling": "x" * 80})
        if number == 2:
            sealed = os.open(segments(tmp_path / "log")[-1], os.O_RDONLY)
            seal(sealed)
        joined(log)
    assert try_lock(sealed)  # by whoever takes lines out of it
    os.close(sealed)
    assert set(synced) == {"log", *names(tmp_path / "log")}
    assert set(synced.values()) == {"log"}
    log.close()


def joined(log: SegmentLog) -> None:
    assert log._syncing
    log._syncing.join(10)
    assert not log._syncing.is_alive()


def test_after_a_sync_that_failed_lines_go_to_another_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The system tells that once: the next sync would say that all is well."""
    fails = [True]

    def sync(_: int) -> None:
        if fails and fails.pop():
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(segmented_log, "_SYNC_INTERVAL_S", 0.0)
    monkeypatch.setattr("os.fdatasync", sync)
    log = SegmentLog(tmp_path, Clock())
    for number in range(4):
        log.append({"number": number})
        joined(log)
    log.close()
    assert [path.read_text().count("\n") for path in segments(tmp_path)] == [1, 3]
    assert [entry["number"] for entry in entries(tmp_path)] == [0, 1, 2, 3]
    assert "a power cut may take lines of" in caplog.text


def open_files() -> int:
    return len(names(Path("/proc/self/fd")))


def test_a_disk_that_hangs_has_one_thread_and_no_file_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, syncing = threading.Event(), threading.Event()

    def sync(_: int) -> None:
        syncing.set()
        assert goes_on.wait(60)

    monkeypatch.setattr(segmented_log, "_SYNC_INTERVAL_S", 0.0)
    monkeypatch.setattr("os.fdatasync", sync)
    log = SegmentLog(tmp_path, Clock())
    log.append({"number": 0})
    assert syncing.wait(60)
    before = threading.active_count(), open_files()
    for number in range(1, 20):
        log.append({"number": number})
    assert (threading.active_count(), open_files()) == before
    goes_on.set()
    log.close()
    assert len(list(entries(tmp_path))) == 20


def test_a_line_counts_also_if_no_thread_can_be_started_to_sync_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(segmented_log, "_SYNC_INTERVAL_S", 0.0)
    log = SegmentLog(tmp_path, Clock())
    log.append({"number": 0})
    joined(log)
    before = open_files()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        for number in range(1, 5):
            log.append({"number": number})
    assert open_files() == before
    log.append({"number": 5})
    log.close()
    assert [entry["number"] for entry in entries(tmp_path)] == list(range(6))
    assert "can't start new thread" in caplog.text


def test_closing_syncs_what_is_left_and_holds_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, synced, sync = open_files(), set[str](), os.fdatasync

    def noted(file: int) -> None:
        synced.add(Path(f"/proc/self/fd/{file}").readlink().name)
        sync(file)

    monkeypatch.setattr("os.fdatasync", noted)
    log = SegmentLog(tmp_path, Clock(), full_bytes=100)
    for _ in range(5):
        log.append({"filling": "x" * 80})
    log.close()
    assert synced == names(tmp_path)
    assert open_files() == before


def test_a_file_of_an_earlier_process_is_never_written_to(tmp_path: Path) -> None:
    earlier = tmp_path / f"20270115T080000-{os.getpid()}-0001.jsonl"
    earlier.write_text('{"number": 0}\n')
    log = SegmentLog(tmp_path, Clock())
    log.append({"number": 1})
    log.close()
    assert earlier.read_text() == '{"number": 0}\n'
    assert [entry["number"] for entry in entries(tmp_path)] == [0, 1]


def test_a_folder_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "log", Clock())
    log.append({"number": 1})
    shutil.rmtree(tmp_path / "log")
    log.append({"number": 2})
    log.close()
    assert list(entries(tmp_path / "log")) == [{"number": 2}]


def test_threads_take_turns(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path, Clock(), full_bytes=5000)

    def write(thread: int) -> None:
        for number in range(200):
            log.append({"thread": thread, "number": number})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = [(entry["thread"], entry["number"]) for entry in entries(tmp_path)]
    assert sorted(found) == [(thread, number) for thread in range(4) for number in range(200)]


def test_a_torn_last_line_is_left_out_and_any_other_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"number": 1}\n{"numb')
    (tmp_path / "b.jsonl").write_text('{"number": 2}\n')
    assert [entry["number"] for entry in entries(tmp_path)] == [1, 2]
    (tmp_path / "b.jsonl").write_text('{"number": 2}\n{"numb\n{"number": 3}\n')
    with pytest.raises(StateDamaged, match=r"b\.jsonl, line 2"):
        list(entries(tmp_path))


def test_a_line_that_did_not_fit_on_the_disk_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SegmentLog(tmp_path, Clock())
    log.append({"number": 1})
    write = os.write
    monkeypatch.setattr("os.write", lambda file, line: write(file, line[:5]))
    with pytest.raises(OSError, match="No space"):
        log.append({"number": 2})
    monkeypatch.undo()
    log.append({"number": 3})
    assert [entry["number"] for entry in entries(tmp_path)] == [1, 3]


def written(folder: Path, *numbers: int) -> Path:
    log = SegmentLog(folder, lambda: 0.0)
    for number in numbers:
        log.append({"number": number})
    log.close()
    return segments(folder)[-1]


def test_whoever_comes_back_reads_on(tmp_path: Path) -> None:
    path = written(tmp_path, 1, 2, 3)
    [(_, first), (end, second), _] = read_entries(path)
    assert (first, second) == ({"number": 1}, {"number": 2})
    [(whole, third)] = read_entries(path, end)
    assert (whole, third) == (path.stat().st_size, {"number": 3})
    assert not list(read_entries(path, whole))


def test_a_torn_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = written(tmp_path, 1)
    with path.open("ab") as out:
        out.write(b'{"number":')
    [(end, _)] = read_entries(path)
    with path.open("ab") as out:
        out.write(b"2}\n")
    assert [entry for _, entry in read_entries(path, end)] == [{"number": 2}]


def test_a_damaged_line_is_named_wherever_reading_began(tmp_path: Path) -> None:
    path = written(tmp_path, 1, 2)
    [*_, (end, _)] = read_entries(path)
    with path.open("ab") as out:
        out.write(b'{"number": \x00}\n{"number": 4}\n')
    for read in (lambda: list(entries(tmp_path)), lambda: list(read_entries(path, end))):
        with pytest.raises(StateDamaged, match=r"line 3, is damaged .* remove the line"):
            read()
