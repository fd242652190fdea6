"""The journal gives back what was put in, whatever happened to its process."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.collect.journal import Entry, Journal, JournalHead, copy_journal, orphaned_journals, readdress_copy
from tipbench.bench.tracking.store import RunDraft

HEAD = JournalHead("http://bench:5000", "tip-bench-x", "tip", {"rubric.md": "# Rubric"})


def entry(key: str, raw: str = "an answer") -> Entry:
    draft = RunDraft(
        "n", 1, 2, "FINISHED", {"t": "v"}, {"p": "v"}, {"m": 0.1}, {"raw.txt": raw, "rubric.md": "# Rubric"}
    )
    return Entry(key, draft)


def keys(journal: Journal, most: int = 100) -> list[str]:
    return [found.key for found, _ in journal.pending(most)]


def test_entries_come_back_in_order_until_they_are_delivered(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    for key in "abcde":
        journal.append(entry(key))
    (_, _), (second, place) = journal.pending(2)
    assert second == entry("b")
    journal.mark_delivered(place)
    assert keys(journal) == ["c", "d", "e"]
    assert journal.count_pending() == 3
    journal.close()
    (adopted,) = orphaned_journals(tmp_path, HEAD.address, HEAD.experiment)
    assert adopted.head == HEAD
    assert keys(adopted) == ["c", "d", "e"]
    adopted.mark_delivered(adopted.pending(9)[-1][1])
    adopted.close()
    assert list(tmp_path.iterdir()) == [], "delivered in full, it is gone"


@settings(max_examples=50, deadline=None)
@given(raw=st.text(st.characters(exclude_categories=[]), max_size=200))
def test_any_answer_comes_back_character_for_character(raw: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    raw = raw.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # halves of a pair are one character
    journal = Journal.create(tmp_path_factory.mktemp("j"), HEAD, "me")
    journal.append(entry("a", raw))
    assert journal.pending(1)[0][0].draft.texts == {"raw.txt": raw, "rubric.md": "# Rubric"}
    journal.close()


def test_a_journal_of_a_version_that_wrote_json_with_spaces_stays_whole(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    journal.append(entry("a"), entry("b"))
    path = journal.path
    journal.close()
    offset, *lines = path.read_bytes().splitlines(keepends=True)
    lines = [json.dumps(json.loads(line)).encode() + b"\n" for line in lines]
    path.write_bytes(b"done %020d\n" % (len(offset) + len(lines[0])) + b"".join(lines))
    adopted = Journal.adopt(path)
    assert adopted is not None
    assert keys(adopted) == ["a", "b"]
    adopted.mark_delivered(adopted.pending(9)[-1][1])
    assert path.read_bytes().splitlines(keepends=True)[1:] == [lines[0]], "its head is not cut off"
    adopted.append(entry("c"))
    assert keys(adopted) == ["c"]
    adopted.close()


def test_a_line_that_was_cut_off_is_left_out_and_written_over(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    journal.append(entry("whole"))
    path = journal.path
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"key": "torn", "dra')
    adopted = Journal.adopt(path)
    assert adopted is not None
    assert keys(adopted) == ["whole"]
    adopted.append(entry("next"))
    assert keys(adopted) == ["whole", "next"]
    adopted.close()


def test_a_journal_stays_small_while_it_is_delivered(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    empty = journal.path.stat().st_size
    for round_ in range(3):
        for key in "ab":
            journal.append(entry(f"{key}{round_}"))
        (_, first), (_, last) = journal.pending(9)
        journal.mark_delivered(first)
        assert journal.path.stat().st_size > empty, "what is not delivered stays"
        journal.mark_delivered(last)
        assert journal.path.stat().st_size == empty
        assert keys(journal) == []
    journal.append(entry("last"))
    journal.close()
    (adopted,) = orphaned_journals(tmp_path)
    assert keys(adopted) == ["last"]
    adopted.close()


def test_killed_between_starting_over_and_saying_so_nothing_waits(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    start = journal.path.stat().st_size
    for key in "ab":
        journal.append(entry(key))
    journal.mark_delivered(journal.pending(1)[0][1])
    journal.close()
    with journal.path.open("rb+") as file:
        file.truncate(start)
    (adopted,) = orphaned_journals(tmp_path)
    assert (keys(adopted), adopted.count_pending(), adopted.is_delivered) == ([], 0, True)
    adopted.append(entry("next"))
    assert keys(adopted) == ["next"]
    adopted.close()


def test_a_full_disk_is_an_error_and_not_half_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    journal.append(entry("a"))
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda *_: 3)
        with pytest.raises(OSError, match="No space left"):
            journal.append(entry("b"))
    journal.append(entry("c"))
    assert keys(journal) == ["a", "c"]
    journal.close()


def test_a_journal_whose_process_lives_is_left_alone(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from tipbench.bench.collect.journal import *; "
        f"j = Journal.create(Path({str(tmp_path)!r}), JournalHead('a', 'x', 's', {{}}), 'me'); "
        "print('ready', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    assert list(orphaned_journals(tmp_path)) == []
    process.kill()
    process.wait()
    process.stdout.close()
    (adopted,) = orphaned_journals(tmp_path)
    assert list(orphaned_journals(tmp_path)) == [], "nobody else adopts it"
    adopted.close()


def test_a_journal_that_was_killed_at_birth_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "x-y.jsonl").write_bytes(b"done 000")
    assert list(orphaned_journals(tmp_path)) == []
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_other_experiments_journals_are_not_touched(tmp_path: Path) -> None:
    Journal.create(tmp_path, HEAD, "me").close()
    journal = Journal.create(tmp_path, HEAD, "again")
    journal.append(entry("a"))
    journal.close()
    assert list(orphaned_journals(tmp_path, HEAD.address, "tip-bench-y")) == []
    assert list(orphaned_journals(tmp_path, "http://elsewhere", HEAD.experiment)) == []


# Copies of a journal that is in use


def adopted(path: Path) -> Journal:
    found = Journal.adopt(path)
    assert found
    return found


def test_a_copy_holds_all_entries_again_and_nothing_that_is_cut_off(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    copy = tmp_path / "copy"
    assert not copy_journal(journal.path, copy), "there is nothing in it"
    for key in "abc":
        journal.append(entry(key))
    journal.mark_delivered(journal.pending(2)[-1][1])
    with journal.path.open("ab") as file:
        file.write(b'{"key": "torn')
    assert copy_journal(journal.path, copy)
    found = adopted(copy)
    assert (found.head, keys(found)) == (HEAD, ["a", "b", "c"])
    assert keys(journal) == ["c"]


def test_a_copy_is_made_again_if_the_journal_began_anew_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path, HEAD, "me")
    for key in "ab":
        journal.append(entry(key, raw="before"))
    copyfile = shutil.copyfile

    def in_pieces(source: Path, target: Path) -> None:
        """The first half of it is read, then all is delivered and others come, as long as those before."""
        monkeypatch.setattr(shutil, "copyfile", copyfile)
        before = source.read_bytes()
        journal.mark_delivered(journal.pending(9)[-1][1])
        for key in "cd":
            journal.append(entry(key, raw="after!"))
        after = source.read_bytes()
        assert len(before) == len(after)
        target.write_bytes(before[:-80] + after[-80:])

    monkeypatch.setattr(shutil, "copyfile", in_pieces)
    assert copy_journal(journal.path, tmp_path / "copy")
    found = [entry for entry, _ in adopted(tmp_path / "copy").pending(9)]
    assert found == [entry("c", raw="after!"), entry("d", raw="after!")]


def test_a_copy_for_another_store_is_found_there(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a", HEAD, "me")
    journal.append(entry("a"))
    (tmp_path / "b").mkdir()
    copy = tmp_path / "b" / journal.path.name
    copy_journal(journal.path, copy)
    readdress_copy(copy, lambda address: address.replace("bench", "other"))
    assert not list(orphaned_journals(tmp_path / "b", HEAD.address, HEAD.experiment))
    (found,) = orphaned_journals(tmp_path / "b", "http://other:5000", HEAD.experiment)
    assert found.head == replace(HEAD, address="http://other:5000")
    assert keys(found) == ["a"]
    assert len(list((tmp_path / "b").iterdir())) == 1
