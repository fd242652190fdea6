"""What earlier versions stored is read by this one, goes on as it was, and is not changed by being read.

Each archive in `homes` holds a home as a version left it, and what its commands and servers said; `homes/make.py` made
them. 0.1.0 is an early state of that version, without much that came later; 0.1.0-last its last one, before states had
a journal. In later ones some states are in the journal alone.
"""

import hashlib
import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.integration.command import tipbench
from tests.integration.recommending import recommending
from tests.integration.serving import serving
from tests.recommender.service.asking import reward
from tipbench.maintenance.relocation import relocate

ARCHIVES = {path.name.removesuffix(".tar.xz"): path for path in Path(__file__).with_name("homes").glob("*.tar.xz")}
LATER = sorted(ARCHIVES.keys() - {"0.1.0"})
BEFORE = ("--experiment", "tip-bench-before")
# Sentences may be worded anew; the others change by being asked for.
IGNORED = {"says", "next", "message", "reason", "log", "version", "last_seen_ms", "updated_ms"}


class Kept:
    """An earlier version's home, moved to where the test may use it."""

    def __init__(self, archive: Path, folder: Path) -> None:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        self.home = folder / "home"
        self.files = folder / "files"
        for made_at, now in (("/tmp/tipbench-home", self.home), ("/tmp/tipbench-kept", folder)):  # paths begin so
            relocate(self.home, Path(made_at), now)

    def told(self, name: str) -> Any:
        said = (self.files / name).read_text()
        return json.loads(said.replace("sqlite:////tmp/tipbench-kept", f"sqlite:///{self.home.parent}"))

    def answers(self, server: str) -> dict[str, Any]:
        """What this server said, by path."""
        if (self.files / "answers.json").exists():
            found: dict[str, Any] = self.told("answers.json")[server]
            return found
        if server == "admin":
            return {"/api/bench/leaderboard/tip-bench-before": self.told("board.json")}
        return {f"/stats/egreedy/{user}": stats for user, stats in self.told("stats.json").items()}

    def content(self) -> dict[str, Any]:
        """All that is stored: files by their digests, MLflow's database by its rows. States may come from a journal."""
        left_out = {"cache", "locks", "state"}
        found: dict[str, Any] = {}
        for path in self.home.rglob("*"):
            if path.is_file() and not left_out & {*path.parts} and "mlflow.db" not in path.name:
                found[str(path.relative_to(self.home))] = hashlib.sha256(path.read_bytes()).hexdigest()
        with closing(sqlite3.connect(self.home / "mlflow.db")) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                if table != "experiment_tags":  # has the leaderboard's answer, in the words of whoever read it last
                    found[table] = sorted(map(repr, database.execute(f'SELECT * FROM "{table}"')))
        return found


@pytest.fixture(params=sorted(ARCHIVES))
def kept(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kept:
    found = Kept(ARCHIVES[request.param], tmp_path)
    monkeypatch.setenv("TIPBENCH_HOME", str(found.home))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{found.home / 'mlflow.db'}")
    return found


later = pytest.mark.parametrize("kept", LATER, indirect=True)


@pytest.mark.parametrize("kept", ["0.1.0"], indirect=True)
def test_nothing_but_a_log_names_the_place_where_it_was(kept: Kept) -> None:
    files = (path for path in kept.home.rglob("*") if path.is_file())
    assert {path.name for path in files if b"/tmp/tipbench-home" in path.read_bytes()} == {"log.txt"}


def out(*words: str, cwd: Path | None = None, statuses: tuple[int, ...] = (0,)) -> str:
    done = tipbench(*words, cwd=cwd)
    assert done.status in statuses, done.err
    return done.out


def assert_said(found: Any, stored: Any, where: str = "") -> None:
    """All that was said is said now; there may be more."""
    if isinstance(stored, dict):
        for key in stored.keys() - IGNORED:
            assert key in found, f"{where} {key}"
            assert_said(found[key], stored[key], f"{where} {key}")
    elif isinstance(stored, list):
        assert len(found) == len(stored), where
        for number, pair in enumerate(zip(found, stored, strict=True)):
            assert_said(*pair, f"{where} {number}")
    elif isinstance(stored, float):
        assert found == pytest.approx(stored, rel=1e-9), where
    else:
        assert found == stored, where


def test_reading_changes_nothing_and_a_judge_file_can_be_applied(kept: Kept) -> None:
    stored = kept.content()
    board = json.loads(out("compare", *BEFORE, "--format", "json"))
    assert_said(board, kept.answers("admin")["/api/bench/leaderboard/tip-bench-before"])
    for words in ("judge --status", "experiments list", "suite list", "recommend promotions", "recommend prior list"):
        out(*words.split(), *(BEFORE if words.startswith("judge") else ()))
    assert kept.content() == stored
    out("judge", *BEFORE, "--apply", str(kept.files / "second.json"), "--accept-drift", "made up")
    after = json.loads(out("compare", *BEFORE, "--format", "json"))
    assert (after["judges"], after["cells"]) != (board["judges"], board["cells"])


def test_what_a_killed_collection_left_is_delivered(kept: Kept) -> None:
    assert "tip-bench-killed" in out("sync")
    assert not list(kept.home.glob("journal/*.jsonl"))
    cells = 1 + kept.told("told.json").get("undelivered", 8)
    listed = out("experiments", "list").splitlines()
    assert any("tip-bench-killed" in line and f" {cells} " in line for line in listed), listed


def test_users_are_known_to_the_recommender(kept: Kept) -> None:
    told = kept.told("told.json")
    with recommending() as service, service.client() as client:
        for path, answer in kept.answers("recommender").items():
            assert_said(client.get(path).raise_for_status().json(), answer, path)
        again = told.get("rewarded", reward("e0", -0.25, "u0"))
        assert client.post("/reward", json=again).json()["status"] == "duplicate"
        for waiting in told.get("waiting", ()):
            assert client.post("/reward", json=waiting).json()["status"] in ("applied", "late")  # a week is over


def test_tokens_jobs_and_drafts_are_the_servers_own(kept: Kept) -> None:
    told = kept.told("told.json")
    with serving(TIPBENCH_ADMIN_TOKEN="") as served:
        with served.client(told["admin_token"]) as admin:
            for path, answer in kept.answers("admin").items():
                assert_said(admin.get(path).raise_for_status().json(), answer, path)
            job = admin.get(f"/api/jobs/{told['job']}").raise_for_status().json()
            assert (job["state"], job["experiment"]) == ("finished", "tip-bench-job")
            assert "answered" in job["log"]
            file = admin.get(f"/api/judging/batches/{told['open_batch']}").raise_for_status().json()
            (item,) = [one for one in file["items"] if one["slot"] == told["slot"]]
            assert (item["scores"]["tone"], item["note"]) == (4, "so far")
            for gate in kept.answers("admin").get("/api/recommend/gates", {"gates": ()})["gates"]:
                if not gate["passed"]:  # the others were never run
                    admin.get(f"/recommender/gates/{gate['id']}", headers={"Accept": "text/html"}).raise_for_status()
        with served.client(told["judge_token"]) as judge:
            judge.post("/api/judging/next", json={}).raise_for_status()


@later
def test_decisions_agents_suites_and_pages_go_on(kept: Kept) -> None:
    decision = kept.answers("admin")["/api/bench/decisions/tip-pool-decided"]
    decide = ("decide", "--experiment", "tip-pool-decided", "--export", "decide.json", "--format", "json")
    went_on = json.loads(out(*decide, cwd=kept.files, statuses=(0, 1)))
    assert went_on["judgements"] > decision["judgements"]
    assert "were written to" in out(
        "judge", *BEFORE, "--apply", str(kept.files / "agent"), "--partial", "--accept-drift", "made up"
    )
    assert "product" in out("suite", "check", "product")
    assert "is up to date" in out("publish", *BEFORE)
