"""What an earlier version stored is read by this one: database, journal, judge file, states, tokens, jobs and drafts.

The archive was made before the packages were arranged anew: two models, two prompts, three scenarios, judged by rules
and by 'lena'; a collection that was killed; users that the recommender served; a server with a judge, a job and a batch
that somebody has begun.
"""

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench_process as tipbench
from tests.integration.recommending import recommending
from tests.integration.serving import serving
from tipbench.maintenance.relocation import relocate

ARCHIVE = Path(__file__).with_name("data_of_0_1.tar.xz")
MADE_AT = "/tmp/tipbench-home"  # paths in it begin so


class Before:
    """The earlier version's home, moved to where the test may use it."""

    def __init__(self, folder: Path) -> None:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder, filter="data")
        self.home = folder / "home"
        self.files = folder / "files"
        self.url = f"sqlite:///{self.home / 'mlflow.db'}"
        self.settings = {"TIPBENCH_HOME": str(self.home), "MLFLOW_TRACKING_URI": self.url}
        relocate(self.home, Path(MADE_AT), self.home)

    def told(self, name: str) -> Any:
        return json.loads((self.files / name).read_text())


@pytest.fixture
def before(tmp_path: Path) -> Before:
    return Before(tmp_path)


def test_nothing_but_a_log_names_the_place_where_it_was(before: Before) -> None:
    found = {path.name for path in before.home.rglob("*") if path.is_file() and MADE_AT.encode() in path.read_bytes()}
    assert found == {"log.txt"}


def board(before: Before) -> Any:
    done = tipbench("compare", "--experiment", "tip-bench-before", "--format", "json", **before.settings)
    assert done.status == 0, done.err
    return json.loads(done.out)


def test_the_leaderboard_is_the_same_and_a_judge_file_can_be_applied(before: Before) -> None:
    first = board(before)
    assert first.pop("answer")["verdict"] == "too_little"  # newer than the file
    assert first.pop("decision") is None
    assert first["comparison"].pop("winner") is None
    stored = before.told("board.json")
    sentences = first.pop("says"), stored.pop("says")  # worded anew since
    assert all(sentences)
    assert first == stored
    filled = str(before.files / "second.json")
    apply = ("--apply", filled, "--accept-drift", "made up")
    applied = tipbench("judge", "--experiment", "tip-bench-before", *apply, **before.settings)
    assert applied.status == 0, applied.err
    assert board(before)["cells"]["judged"] > first["cells"]["judged"]


def test_what_a_killed_collection_left_is_delivered(before: Before) -> None:
    done = tipbench("sync", **before.settings)
    assert done.status == 0, done.err
    assert "tip-bench-killed" in done.out
    assert not list(before.home.glob("journal/*.jsonl"))
    listed = tipbench("experiments", "list", **before.settings).out
    assert any("tip-bench-killed" in line and " 9 " in line for line in listed.splitlines()), listed


def test_users_are_known_to_the_recommender(before: Before) -> None:
    with recommending(TIPBENCH_HOME=str(before.home)) as service, service.client() as client:
        for user, stats in before.told("stats.json").items():
            assert client.get("/stats/egreedy", params={"user_id": user}).json() == {**stats, "prior": None}
        again = {"user_id": "u0", "event_id": "e0", "reward": -0.25}
        assert client.post("/reward", json=again).json()["status"] == "duplicate"


def test_tokens_jobs_and_drafts_are_the_servers_own(before: Before) -> None:
    told = before.told("told.json")
    with serving(**before.settings, TIPBENCH_ADMIN_TOKEN="") as served:
        with served.client(told["admin_token"]) as admin:
            job = admin.get(f"/api/jobs/{told['job']}").raise_for_status().json()
            assert (job["state"], job["experiment"]) == ("finished", "tip-bench-job")
            assert "answered" in job["log"]
            file = admin.get(f"/api/judging/batches/{told['open_batch']}").raise_for_status().json()
            (item,) = [one for one in file["items"] if one["slot"] == told["slot"]]
            assert (item["scores"]["tone"], item["note"]) == (4, "so far")
        with served.client(told["judge_token"]) as judge:
            judge.post("/api/judging/next", json={}).raise_for_status()
