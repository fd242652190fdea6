"""`tipbench recommend erase`, as a user types it."""

import io
import json
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.recommender.making import Clock, a_recommender, a_request, a_reward
from tipbench.core.paths import recommender_folder
from tipbench.recommender.store.files import FileStore


@pytest.fixture(autouse=True)
def _served(home: Path) -> None:
    folder = recommender_folder(home)
    recommender = a_recommender(folder, Clock(), FileStore(folder / "state"))
    for user in ("anna", "anna_b", "bert"):
        recommender.score("egreedy", a_request("e1", user))
        recommender.reward("egreedy", a_reward("e1", 0.5, user))
    recommender.close()


def states(home: Path) -> list[str]:
    return sorted(path.name for path in (recommender_folder(home) / "state").glob("*.json"))


def test_what_was_removed_comes_first_and_what_may_still_hold_it_is_named(home: Path) -> None:
    (home / "home.tar").touch()
    (home / "backups.jsonl").write_text(json.dumps({"path": str(home / "home.tar"), "finished_at": "today"}) + "\n")
    done = tipbench("recommend", "erase", "anna", "bert", "anna", "--yes")
    folder, removed = recommender_folder(home), "1 state with 1 event in {}/state, 2 lines of the decision log."
    _, _, *lines = done.out.splitlines()
    elsewhere = [
        "What may still hold it, and can't be changed from here:",
        f"  - the backup {home}/home.tar of today: make another one and delete it, or erase again after restoring it",
        "  - the disk: deleted files, until they are written over",
    ]
    assert lines == [
        line
        for user in ("anna", "bert")
        for line in (
            f"{user} is erased. Removed: {removed.format(folder)}",
            f"Nothing of {user} is left in the files of {folder}.",
            *elsewhere,
        )
    ]
    assert (done.status, done.err, states(home)) == (0, "", ["anna_b_egreedy.json"])


def test_it_asks_first(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, status in (("n\n", 0), ("", 2)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        asked = tipbench("recommend", "erase", "anna")
        assert "Found of anna: 1 state with 1 event in" in asked.out
        assert (asked.status, len(states(home))) == (status, 3)


def test_nobody_of_that_name(home: Path) -> None:
    done = tipbench("recommend", "erase", "ann")
    folder = recommender_folder(home)
    assert done == (0, f"Nothing of ann was found, so nothing was changed. Searched: the files of {folder}.\n", "")
    assert len(states(home)) == 3


def test_what_can_not_be_an_id_is_refused_before_anybody_is_erased(home: Path) -> None:
    done = tipbench("recommend", "erase", "anna", "../bert", "--yes")
    assert (done.status, len(states(home))) == (2, 3)
    assert "the user id '../bert' can't be used as a file name" in done.err


def test_what_is_left_is_named_and_so_is_a_word_that_only_looks_like_it(home: Path) -> None:
    (recommender_folder(home) / "decisions" / "a.jsonl").write_text('{"user_id": "anna",\n')
    (recommender_folder(home) / "note.txt").write_text("anna")
    done = tipbench("recommend", "erase", "anna", "--yes")
    assert done.status == 1
    assert "anna is not gone yet. Removed: 1 state with 1 event" in done.out
    assert "decisions/a.jsonl, line 1 can't be read, and has this id in it. Remove it if it is" in done.out
    assert "The word anna is in a text, or is the id of something else, in 1 file: " in done.out
    assert "recommender/note.txt. That was not changed" in done.out
