"""A user is erased while two workers serve others: no trace in any file or table, and nobody else loses anything."""

import json
import random
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.integration.command import tipbench
from tests.integration.postgres_server import PostgresServer
from tests.integration.recommender.databases import connection_url, new_schema
from tests.integration.recommending import HEADERS, recommending
from tests.recommender.service.asking import request, reward
from tipbench.core.paths import decisions_folder, recommender_folder, signals_folder
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.store import postgresql, postgresql_tables

GONE = "anna-who-leaves"
OTHERS = ("anna", "anna-who", "bert", "carl")
SHADOW = "egreedy-v2-shadow"


class Client:
    """One connection, so one worker. Sends again what was not answered in time, as clients do."""

    def __init__(self, url: str) -> None:
        self._connection = HTTPConnection(url.removeprefix("http://"), timeout=60)
        self.close = self._connection.close

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        while True:
            self._connection.request("POST", path, json.dumps(body), {**HEADERS, "Content-Type": "application/json"})
            answer = self._connection.getresponse()
            told: dict[str, Any] = json.loads(answer.read())
            if answer.status != 503:
                assert answer.status == 200, told
                return told


class Using(threading.Thread):
    """One user's app: scores and rewards until it is told to stop."""

    def __init__(self, url: str, user: str, stop: threading.Event) -> None:
        super().__init__()
        self._client, self.user, self._stop_it = Client(url), user, stop
        self.rewards: dict[str, float] = {}  # by event
        self._drawn = random.Random(user)

    def run(self) -> None:
        while not self._stop_it.is_set():
            event, value = f"{self.user}:{len(self.rewards)}", round(self._drawn.uniform(-1, 1), 6)
            self._client.post("/score", request(event, self.user))
            self._client.post("/reward", reward(event, value, self.user))
            self.rewards[event] = value
        self._client.close()


@pytest.fixture(params=["files", "postgresql"])
def environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PostgresServer | None:
    """Where the states are."""
    server: PostgresServer | None = None
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        monkeypatch.setenv("TIPBENCH_STATE", "postgresql")
        monkeypatch.setenv("TIPBENCH_POSTGRESQL_URL", new_schema(server))
        # On a machine that is busy with other tests, a small table may take longer than requests may wait for.
        longer = "SELECT set_config('statement_timeout', '60s', false), set_config('lock_timeout', '60s', false)"
        monkeypatch.setattr(postgresql_tables, "LIMIT_TIME", longer)
        monkeypatch.setattr(postgresql, "_REWRITES", 100)
    return server


def test_no_trace_in_any_file_or_table_and_others_are_whole(home: Path, environment: PostgresServer | None) -> None:
    with recommending("--workers", "2", "--shadow", SHADOW) as served:
        clients = [Client(served.url) for _ in range(4)]  # both workers have the user's document in memory
        for number in range(40):
            path = ("", "/egreedy/v2", "/linucb")[number % 3]
            client = clients[number % 4]
            client.post(f"/score{path}", request(f"{GONE}:{number}", GONE))
            if number % 2:
                client.post(f"/reward{path}", reward(f"{GONE}:{number}", 0.5, GONE))
        for client in clients:
            client.close()
        if environment:
            with psycopg.connect(connection_url(environment), autocommit=True) as connection:
                connection.execute("ANALYZE")
            assert {"tipbench_events", "pg_statistic"} <= {
                row.split(":")[0].split(".")[-1] for row in rows_with(environment, GONE)
            }
        stop = threading.Event()
        apps = [Using(served.url, user, stop) for user in OTHERS]
        for app in apps:
            app.start()
        time.sleep(0.5)
        done = tipbench("recommend", "erase", GONE, "--yes")
        time.sleep(0.2)
        stop.set()
        for app in apps:
            app.join(60)
            assert not app.is_alive()
        with served.client() as reader:
            known = {app.user: reader.get(f"/stats/egreedy/{app.user}").json() for app in apps}
            assert reader.get(f"/stats/egreedy/{GONE}").json()["n"] == 0
    assert done.status == 0, done.out + done.err
    assert f"{GONE} is erased. Removed: 3 states with 40 events in " in done.out
    assert ", 60 lines of the decision log, " in done.out
    assert files_with(home, GONE) == []
    if environment:
        assert rows_with(environment, GONE) == []
        on_disk = files_with(environment.folder / "data", GONE)
        assert [name for name in on_disk if not name.startswith("pg_wal/")] == []
    assert_whole(home, apps, known)


def files_with(folder: Path, user: str) -> list[str]:
    """Every file that has the id in it or in its name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path.relative_to(folder)) for path in files if user in path.name or user.encode() in path.read_bytes()]


def rows_with(server: PostgresServer, user: str) -> list[str]:
    """Rows of all tables of the database, the system's own too, with the id in any column; then all is on disk."""
    found = []
    with psycopg.connect(connection_url(server), autocommit=True) as connection:
        tables = connection.execute("SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm')")
        for (table,) in tables.fetchall():
            rows = connection.execute(f"SELECT t::text FROM {table} AS t")
            found += [f"{table}: {text}" for (text,) in rows if user in text]
        connection.execute("CHECKPOINT")
    return found


def assert_whole(home: Path, apps: list[Using], known: dict[str, dict[str, Any]]) -> None:
    """Each event of each user was learned once, and is in the log once, and so is each signal that is there."""
    for app in apps:
        rewards, told = app.rewards.values(), known[app.user]
        assert (told["n"], told["waiting"], told["duplicates"]) == (len(rewards), 0, 0)
        assert told["mean_reward"] == pytest.approx(sum(rewards) / len(rewards), abs=1e-9)
    events = {event: value for app in apps for event, value in app.rewards.items()}
    logged = list(entries(decisions_folder(home)))
    assert {entry["kind"] for entry in logged} == {"decision", "reward"}
    decided = Counter(entry["request"]["event_id"] for entry in logged if entry["kind"] == "decision")
    assert decided == Counter(events.keys())
    rewarded = Counter((entry["event_id"], entry["reward"]) for entry in logged if entry["kind"] == "reward")
    assert rewarded == Counter(events.items())
    signals = [entry for entry in entries(signals_folder(home)) if entry["signal"] == f"shadow:{SHADOW}"]
    last = [entry["counts"] for entry in entries(signals_folder(home)) if entry["signal"].endswith(":counts")]
    assert (
        len(Counter(signal["event_id"] for signal in signals)) == len(signals) <= sum(one["published"] for one in last)
    )
    assert list(recommender_folder(home).glob("**/*~1.jsonl")), "files were rewritten while workers wrote to them"
