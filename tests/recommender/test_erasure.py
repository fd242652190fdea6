"""A user is erased from everything, others lose nothing, and a kill at any moment is made good by the next run."""

import itertools
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.recommender.making import Clock, a_recommender, a_request, a_reward
from tests.recommender.prior.priors import prior_content
from tests.recommender.waiting import LONG_S, wait_until
from tipbench.core.errors import StoreUnreachable
from tipbench.core.locks import exclusive
from tipbench.core.paths import decisions_folder, lock_path, recommender_folder, signals_folder
from tipbench.recommender import erasure
from tipbench.recommender.erasure import Erased, Eraser, Traces, backups
from tipbench.recommender.log.rewriting import exclusive_logs, remove_lines
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.replay.rounds import load_rounds
from tipbench.recommender.shadows.runner import open_shadows
from tipbench.recommender.store import files
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key

USERS = ("u1", "u10", "u1_egreedy", "u2")
NAME = "egreedy-v2-shadow"


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "TIMEOUT_S", 0.0)


@pytest.fixture
def serving(home: Path) -> Iterator[Recommender]:
    """All users have three events, two of them rewarded, with a shadow beside them."""
    store = FileStore(recommender_folder(home) / "state")
    shadows = open_shadows([NAME], store, signals_folder(home), Clock(), timeout_s=LONG_S)
    recommender = a_recommender(recommender_folder(home), Clock(), store, shadows)
    for user in USERS:
        for number in range(3):
            recommender.score("egreedy", a_request(f"{user}:{number}", user))
        for number in range(2):
            recommender.reward("egreedy", a_reward(f"{user}:{number}", 0.5, user))
    recommender.score("linucb", a_request("last", "u1"))
    wait_until(lambda: shadows.status()[0].counts.published == 3 * len(USERS))
    yield recommender
    recommender.close()


def erased(home: Path, user: str = "u1") -> Erased:
    store = FileStore(recommender_folder(home) / "state", with_marker=True)
    with exclusive_logs(home, lambda _: None):
        result = Eraser(home, [store], Clock()).erase(user)
    store.close()
    return result


def files_with(home: Path, user: str) -> list[str]:
    """Every file that has the id in it as a word, or in its name."""
    word = re.compile(rb"(?<![A-Za-z0-9_-])%b(?![A-Za-z0-9_-])" % user.encode())
    found = [path for path in home.rglob("*") if path.is_file()]
    return [
        path.name for path in found if word.search(path.read_bytes()) or path.name.strip(".").startswith(f"{user}_e")
    ]


def others(home: Path, user: str = "u1") -> list[object]:
    """All that there is of other users: their states with all events, their lines and their signals."""
    store = FileStore(recommender_folder(home) / "state", with_marker=True)
    keys = [key for key in list(store.keys()) if key.user_id != user]
    found: list[object] = [(key, store.read_state(key), store.events(key)) for key in keys]
    for folder in (decisions_folder(home), signals_folder(home)):
        lines = [
            entry for entry in entries(folder) if f'"{user}"' not in json.dumps(entry) and "event_id" in str(entry)
        ]
        found += sorted(map(json.dumps, lines))
    store.close()
    return found


def test_no_trace_in_any_file_and_nothing_of_others_is_gone(home: Path, serving: Recommender) -> None:
    before = others(home)
    result = erased(home)
    states = str(recommender_folder(home) / "state")
    assert result.removed == Traces(((states, 2, 4),), 6, 3)
    assert (result.is_complete, result.search.mentions, files_with(home, "u1")) == (
        True,
        [],
        ["u1_egreedy_egreedy.json"],
    )
    assert others(home) == before
    assert not list((recommender_folder(home) / "state" / ".journal").iterdir()), (
        "journals name users, removals digests"
    )
    assert serving.stats("egreedy", "u1").n == 0
    serving.score("egreedy", a_request("again", "u10"))
    assert serving.stats("egreedy", "u10").waiting == 2


def test_the_user_comes_back_as_a_new_one(home: Path, serving: Recommender) -> None:
    erased(home)
    serving.score("egreedy", a_request("u1:0", "u1"))
    serving.reward("egreedy", a_reward("u1:0", 1.0, "u1"))
    assert (serving.stats("egreedy", "u1").n, serving.stats("egreedy", "u1").waiting) == (1, 0)


def test_old_and_damaged_files_and_those_of_a_killed_writer(home: Path, serving: Recommender) -> None:
    serving.close()
    state = recommender_folder(home) / "state"
    whole = (state / "u1_egreedy.json").read_bytes()
    once = whole.partition(b',"crc"')[0].replace(b'"policy":"egreedy"', b'"policy":"once/there"') + b"}"
    (state / "u1_once_there.json").write_bytes(once)
    (state / "u1_egreedy_v2.json").write_bytes(whole[:100])
    (state / ".u1_egreedy.json.part").write_bytes(whole[:100])
    (state / "u1_linucb.new").write_bytes(whole[:100])
    (state / "MOVED").write_text(json.dumps({"kind": "MOVED", "store": "files", "address": "x", "at_ms": 1}))
    result = erased(home)
    assert result.is_complete
    assert result.removed.states[0][1:] == (3, 7), "a damaged one is removed, and can't be counted"
    assert files_with(home, "u1") == ["u1_egreedy_egreedy.json"]


def test_what_is_damaged_or_may_be_of_others_is_told_and_left(home: Path, serving: Recommender) -> None:
    log = decisions_folder(home) / "20200101T000000-1-0001.jsonl"
    log.write_bytes(b'{"kind":"reward","user_id":"u1" damaged\n')
    (recommender_folder(home) / "note.txt").write_text("u1 has called")
    serving.score("egreedy", a_request("u1", "u2"))
    result = erased(home)
    assert result.search.unreadable == [f"{log}, line 1"]
    assert not result.is_complete
    assert {path.name for path in result.search.mentions} >= {"note.txt", "u2_egreedy.json"}
    assert not result.search.theirs


def test_digits_in_numbers_are_no_mention_of_a_user_who_is_a_number(home: Path, serving: Recommender) -> None:
    serving.score("egreedy", a_request("e", "9"))
    result = erased(home, "9")
    assert (result.is_complete, result.search.mentions) == (True, [])


def test_who_is_unknown_is_not_found_and_nothing_is_changed(home: Path, serving: Recommender) -> None:
    with exclusive_logs(home, lambda _: None):
        eraser = Eraser(home, [], Clock())
        before = sorted(map(str, recommender_folder(home).rglob("*")))
        assert not eraser.find("u")
        assert not eraser.search("u").theirs
    assert sorted(map(str, recommender_folder(home).rglob("*"))) == before


def test_an_app_that_goes_on_is_told(home: Path, serving: Recommender, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = itertools.count()

    def removed(*arguments: object) -> int:
        serving.score("egreedy", a_request(f"more{next(numbers)}", "u1"))
        return remove_lines(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(erasure, "remove_lines", removed)
    result = erased(home)
    assert not result.is_complete
    assert result.left.states
    monkeypatch.undo()
    assert erased(home).is_complete


def test_a_kill_at_any_step_leaves_nothing_to_the_next_prior_and_the_next_run_finishes(
    home: Path, serving: Recommender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before each change of a file."""
    serving.close()
    before, everything = others(home), others(home, "nobody")
    for step in itertools.count():
        copy = tmp_path / str(step)
        shutil.copytree(recommender_folder(home), recommender_folder(copy))
        left = itertools.count(step, -1)
        with monkeypatch.context() as killing:
            for of, name in ((os, "replace"), (os, "fsync"), (os, "fdatasync"), (Path, "unlink"), (os, "fchmod")):
                killing.setattr(of, name, _killed(getattr(of, name), left))
            try:
                erased(copy)
                break
            except Killed:
                pass
        assert others(copy) == before
        rounds = load_rounds(decisions_folder(copy), for_weights=False)
        users = {one.request.user_id for one in rounds.read(rounds.users >= 0)}
        assert users == {*USERS} - {"u1"} or (users == {*USERS} and others(copy, "nobody") == everything)
        assert erased(copy).is_complete
        assert files_with(copy, "u1") == ["u1_egreedy_egreedy.json"]
        assert others(copy) == before
    assert step > 15


class Killed(BaseException):
    """Ends everything, as SIGKILL does."""


def _killed(act: Callable[..., object], left: Iterator[int]) -> Callable[..., object]:
    def dying(*arguments: object, **options: object) -> object:
        if threading.current_thread() is threading.main_thread() and next(left) <= 0:
            raise Killed
        return act(*arguments, **options)

    return dying


def test_a_process_that_does_not_close_its_journal_is_told(
    home: Path, serving: Recommender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PURGE_TIMEOUT_S", 0.1)
    monkeypatch.setattr("tipbench.recommender.store.journal._LOOK_S", 60.0)
    serving.score("egreedy", a_request("e", "u1"))
    with pytest.raises(StoreUnreachable, match="check whether a process hangs, and start this again"):
        erased(home)
    monkeypatch.undo()
    monkeypatch.setattr(erasure, "TIMEOUT_S", 0.0)
    serving.close()
    assert erased(home).is_complete


def test_two_at_once_and_a_backup_wait_for_each_other_and_what_a_killed_one_left_is_removed(home: Path) -> None:
    signals_folder(home).mkdir(parents=True)
    (signals_folder(home) / ".x.jsonl.part").write_text("u1")
    for lock, what in (("recommender", "logs"), "'tipbench prune' is at work"), (("backup",), "a backup is being made"):
        told: list[str] = []
        second = threading.Thread(target=_pass_through, args=(home, told.append))
        with exclusive(lock_path(home, *lock), "", wait=False, notify=told.append):
            second.start()
            wait_until(lambda told=told: bool(told))  # type: ignore[misc]
            assert second.is_alive()
        second.join(LONG_S)
        assert not second.is_alive()
        assert f"{what}; waiting until it is done" in told[0].lower()
    assert not list(signals_folder(home).iterdir())


def _pass_through(home: Path, notify: Callable[[str], None]) -> None:
    with exclusive_logs(home, notify):
        pass


def test_priors_and_backups_are_named(home: Path, serving: Recommender, tmp_path: Path) -> None:
    digest = FileStore(recommender_folder(home) / "state").priors.put(prior_content())
    (tmp_path / "there.tar").touch()
    lines = [
        {"path": str(tmp_path / name), "finished_at": "2026-11-16 10:00 UTC"} for name in ("there.tar", "gone.tar")
    ]
    (home / "backups.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"torn')
    [backup] = backups(home)
    assert backup.startswith(f"the backup {tmp_path}/there.tar of 2026-11-16 10:00 UTC: make another one and delete it")
    elsewhere = erased(home).elsewhere
    assert elsewhere[0].startswith(f"1 prior ({digest}): sums over all users")
    assert elsewhere[1:] == (backup, "the disk: deleted files, until they are written over")


def test_removals_are_remembered_until_no_journal_is_older(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = recommender_folder(home) / "state"
    one, other = FileStore(state), FileStore(state)
    recommender = a_recommender(recommender_folder(home), Clock(), one)
    for user in ("u1", "u2"):
        recommender.score("egreedy", a_request("e1", user))
    other.clear("u1", ["egreedy"])
    with monkeypatch.context() as earlier:
        earlier.setattr(files, "_clock_revision", lambda: 0)  # before the user was removed
        earlier.setattr(files, "seal_segments", lambda _: [])
        other.purge()
    assert (state / ".journal" / "removed").exists()
    other.purge()
    assert not list((state / ".journal").iterdir())
    assert set(other.keys()) == {Key("u2", "egreedy")}
