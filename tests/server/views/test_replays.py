"""Replays that were made are listed and shown; one that was edited is told, and hides no other."""

from pathlib import Path

import pytest

from tests.recommender.gates import held_replay
from tests.server.views.made_recommender import a_replay
from tipbench.core.errors import InvalidInput, NotFound, StateRefused
from tipbench.core.paths import replays_folder
from tipbench.recommender.replay.outcome import replay_data, run_replay
from tipbench.recommender.replay.record import store_replay
from tipbench.server.views.replays import Replays


def test_the_newest_is_the_first_and_an_edited_one_the_last(tmp_path: Path) -> None:
    replays = Replays(tmp_path)
    assert replays.lines() == []
    first, second, edited = a_replay(tmp_path, "failed"), a_replay(tmp_path, "thin"), a_replay(tmp_path)
    path = replays_folder(tmp_path) / f"{edited}.json"
    path.write_text(path.read_text("utf-8").replace("8000", "9000"), "utf-8")
    newest, oldest, wrong = replays.lines()
    assert (newest.id, newest.candidate, newest.status) == (second, "egreedy/v2", "thin")
    assert (oldest.id, oldest.status, oldest.reason) == (first, "failed", "by DR it earns what it earns")
    assert wrong.id == edited
    assert "was changed after it was written, so it can't be trusted" in wrong.problem


def test_one_as_it_is_kept_by_the_command(tmp_path: Path) -> None:
    kept = store_replay(tmp_path, replay_data(run_replay(tmp_path / "no log", "egreedy/v2", 0.5)), 7)
    found = Replays(tmp_path).replay(kept)
    assert (found.candidate["name"], found.verdict.status, found.served, found.estimates) == (
        "egreedy/v2",
        "thin",
        None,
        {},
    )
    assert Replays(tmp_path).data(kept)["made_ms"] == 7


def test_what_is_not_there_is_no_id_or_not_whole_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no replay 0123456789abcdef"):
        Replays(tmp_path).replay("0123456789abcdef")
    with pytest.raises(InvalidInput, match="is not a record id"):
        Replays(tmp_path).replay("../promotions")
    with pytest.raises(StateRefused, match="in a format that this version of tipbench does not know"):
        Replays(tmp_path).replay(held_replay(tmp_path, "passed"))
