"""A record is written once, under a name that its content gives it."""

import json
from pathlib import Path

import pytest

from tests.recommender.gates import held_replay
from tipbench import __version__
from tipbench.core.errors import StateDamaged, StateRefused
from tipbench.core.identity import data_digest
from tipbench.core.paths import replays_folder
from tipbench.recommender.replay.record import replay_records, store_replay

FOUND = {"candidate": {"name": "egreedy/v2"}, "verdict": {"passed": True, "status": "passed", "reason": "…"}}


def test_what_is_kept_and_its_name(tmp_path: Path) -> None:
    name = store_replay(tmp_path, FOUND, 1_800_000_000_000)
    stored = json.loads((tmp_path / "recommender" / "replays" / f"{name}.json").read_text(encoding="utf-8"))
    assert stored == {
        "id": name,
        "schema": 1,
        "made_ms": 1_800_000_000_000,
        "tipbench": __version__,
        **FOUND,
    }
    del stored["id"]
    assert name == data_digest(stored)[:16]


def test_another_replay_is_another_record(tmp_path: Path) -> None:
    names = {store_replay(tmp_path, FOUND, made_ms) for made_ms in (1, 2, 2)}
    assert {path.name for path in replays_folder(tmp_path).iterdir()} == {f"{name}.json" for name in names}
    assert len(names) == 2


def test_records_are_read_newest_first(home: Path) -> None:
    assert replay_records(home).newest_first() == []
    names = [held_replay(home, status) for status in ("passed", "failed", "thin")]
    found = [(replay.id, replay.verdict.status) for replay in replay_records(home).newest_first()]
    assert found == list(zip(names[::-1], ("thin", "failed", "passed"), strict=True))


def test_an_edited_verdict_is_refused(home: Path) -> None:
    path = replays_folder(home) / f"{held_replay(home, 'failed')}.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"failed"', '"passed"'), encoding="utf-8")
    with pytest.raises(StateDamaged, match="was changed after it was written"):
        replay_records(home).newest_first()


def test_the_form_of_another_tipbench_is_refused(home: Path) -> None:
    name = store_replay(home, {"candidate": {}, "verdict": {"status": "well"}}, 1)
    with pytest.raises(StateRefused, match=f"replay {name} was stored in a form"):
        replay_records(home).newest_first()
