"""`tipbench sim replay`, as a user types it."""

import json
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.recommender.replay.logs import log_of_chance
from tests.recommender.served_events import Clock, Serving, tip
from tipbench.core.paths import decisions_folder
from tipbench.recommender.log.segmented_log import SegmentLog


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decisions")
    log_of_chance(folder, 50, 60)
    return folder


def kept(home: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text()) for path in (home / "recommender" / "replays").iterdir()]


def test_one_that_passes(log: Path, home: Path) -> None:
    done = tipbench("sim", "replay", "--candidate", "egreedy/v2", "--log", str(log))
    assert done.status == 0, done.err
    assert done.out.startswith(
        "PASSED: egreedy/v2 against what was served\n"
        "the candidate would have earned more: by DR the candidate's gain per decision over what was served is +0."
    )
    for part in (
        "3,000 decisions can be replayed; the candidate learned from 1,500 and was tested on 1,500 of 50 users.",
        "Effective sample: ",
        "Largest weight: ",
        "DR (decides)",
        "what was served",
    ):
        assert part in done.out
    assert "Left out" not in done.out
    assert "without profile_features" not in done.out
    [record] = kept(home)
    assert f"Stored as replay {record['id']}." in done.out


def test_one_that_does_not(log: Path, home: Path) -> None:
    done = tipbench("sim", "replay", "--candidate", "egreedy", "--log", str(log), "--format", "json")
    assert done.status == 1
    found = json.loads(done.out)
    assert found["verdict"]["status"] == "undecided"
    [record] = kept(home)
    assert {key: record[key] for key in found} == found
    assert str(record["id"]) in done.err


def test_a_log_that_can_not_tell(home: Path) -> None:
    assert tipbench("sim", "replay", "--candidate", "linucb").status == 1  # where there is no log at all
    one = Serving(home / "recommender", Clock())
    assert one.log == decisions_folder(home)
    for number in range(6):
        one.serve("u1", f"e{number}", [tip(1), tip(2)], "linucb" if number == 5 else "egreedy")
        one.reward("u1", f"e{number}", 0.5, "linucb" if number == 5 else "egreedy")
    one.serve("u1", "e6", [tip(1)])
    done = tipbench("sim", "replay", "--candidate", "egreedy/v2")
    assert done.status == 1
    assert "TOO THIN: egreedy/v2 against what was served" in done.out
    assert "Left out: 1 gave some candidates no chance, as LinUCB does; 1 had one candidate only." in done.out
    assert "3 of these came without profile_features by category" in done.out
    assert {record["verdict"]["status"] for record in kept(home)} == {"thin"}  # type: ignore[index]


def test_refused_in_one_sentence(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path / "other", lambda: 0.0)
    log.append({"schema": 99, "kind": "decision"})
    log.close()
    for words, told in (
        (("--candidate", "egreedy/v9"), "there is no policy 'egreedy/v9' to replay; there are egreedy, egreedy/v2"),
        (("--candidate", "egreedy", "--share", "1"), "a share of 1 leaves nothing to learn from"),
        (("--candidate", "egreedy", "--share", "nan"), "a share of nan leaves nothing"),
        (("--candidate", "egreedy", "--log", str(tmp_path / "nowhere")), "nowhere is not a folder; name the one that"),
        (("--candidate", "egreedy", "--log", str(tmp_path / "other")), "contains a line of another kind of log"),
        ((), "Missing option '--candidate'"),
    ):
        refused = tipbench("sim", "replay", *words)
        assert refused.status == 2
        assert told in refused.err
        assert "Traceback" not in refused.err


def test_help_has_an_example() -> None:
    assert "tipbench sim replay --candidate egreedy/v2" in tipbench("sim", "replay", "--help").out
    assert "replay" in tipbench("sim", "--help").out
