"""A home in which everything is at work, what it has acknowledged so far, and whether a copy of it has all of that."""

import json
import random
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from itertools import count
from os import environ
from pathlib import Path
from typing import Any, NamedTuple

from tests.integration.collecting import collect_slowly
from tests.integration.recommending import HEADERS, Recommending, recommending
from tests.integration.serving import TOKEN, Served, serving
from tests.recommender.service.asking import request, reward
from tipbench.bench.bench import Bench
from tipbench.bench.tracking.address import open_store, own_database_url
from tipbench.bench.tracking.artifacts import is_run_folder, stored_run_ids
from tipbench.bench.tracking.runs import CELL, KIND
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import StateDamaged, TipbenchError
from tipbench.core.settings import Settings
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Event, Key

POLICY = "egreedy/v2"
_EVENTS_OF_A_USER = 100  # fewer than are remembered, so that a state is the sum of all of its events
_CLIENTS = 4
_CELL_DONE = re.compile(rb"^\[\d+/\d+\]", re.MULTILINE)
_TEXTS = ("candidates.json", "prompt.txt", "raw.txt", "rubric.md")


class Rewarded(NamedTuple):
    """An event whose reward was acknowledged."""

    user_id: str
    chosen: str
    reward: float


class Acknowledged(NamedTuple):
    """What would be lost if it were not in a backup that begins now."""

    events: Mapping[str, Rewarded]
    notes: Mapping[str, int]  # of a judge who has not handed in: slot → number
    cells: Mapping[str, int]  # experiment → how many are done


class Load:
    """Clients of the recommender, a judge in the admin server, and one collection after the other."""

    def __init__(self, home: Path, folder: Path, repeats: int, latency_s: float) -> None:
        """A collection has 24 cells a repeat, each of which takes so long."""
        self._home = home
        self._folder = folder
        self._repeats = repeats
        self._latency_s = latency_s
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._numbers = count()
        self._events: dict[str, Rewarded] = {}
        self._notes: dict[str, int] = {}
        self._experiments: list[str] = []
        self.failures: list[BaseException] = []

    def acknowledged(self) -> Acknowledged:
        with self._lock:
            cells = {name: len(_CELL_DONE.findall(self._log(name).read_bytes())) for name in self._experiments}
            begun = {name: done for name, done in cells.items() if done}
            return Acknowledged(dict(self._events), dict(self._notes), begun)

    @contextmanager
    def running(self, service: Recommending, admin: Served) -> Iterator[None]:
        work = [lambda: self._score_and_reward(service.url)] * _CLIENTS
        work += [lambda: self._judge(admin), self._collect_on]
        threads = [threading.Thread(target=self._guarded, args=[one]) for one in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the test says it
            self.failures.append(error)

    def _score_and_reward(self, url: str) -> None:
        with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as client:
            while not self._stop.is_set():
                number = next(self._numbers)
                event, user = f"e{number}", f"u{number // _EVENTS_OF_A_USER}"
                value = round(random.Random(number).uniform(-1, 1), 6)  # its own, so that sums tell which were learned
                chosen = _post(client, f"/score/{POLICY}", request(event, user))["chosen"]
                _post(client, f"/reward/{POLICY}", reward(event, value, user))
                with self._lock:
                    self._events[event] = Rewarded(user, chosen, value)

    def _judge(self, admin: Served) -> None:
        """Change notes again and again, and hand in nothing."""
        with admin.client(TOKEN) as client:
            while not (wanted := client.post("/api/judging/next", json={}).raise_for_status().json()["batch"]):
                if self._stop.wait(0.2):
                    return
            batch = wanted["batch"]
            items = client.get(f"/api/judging/batches/{batch}").raise_for_status().json()["items"]
            for number in count():
                if self._stop.wait(0.02):
                    return
                slot = items[number % len(items)]["slot"]
                path = f"/api/judging/batches/{batch}/items/{slot}"
                client.patch(path, json={"note": str(number)}).raise_for_status()
                with self._lock:
                    self._notes[slot] = number

    def _collect_on(self) -> None:
        url = f"sqlite:///{self._home / 'mlflow.db'}"
        for number in count():
            name = f"tip-bench-load-{number}"
            command = collect_slowly(self._folder, url, name, latency_s=self._latency_s, repeats=self._repeats)
            with self._log(name).open("wb") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tipbench", *command],
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env={**environ, "TIPBENCH_HOME": str(self._home)},
                )
                with self._lock:
                    self._experiments.append(name)
                while process.poll() is None:
                    if self._stop.wait(0.05):
                        process.kill()
                        process.wait()
                        return
            assert process.returncode == 0, self._log(name).read_text()[-1000:]

    def _log(self, experiment: str) -> Path:
        return self._folder / f"{experiment}.log"


@contextmanager
def home_at_work(home: Path, folder: Path, repeats: int = 40, latency_s: float = 0.01) -> Iterator[Load]:
    """Start both servers, the recommender's with two workers, and all who use them."""
    load = Load(home, folder, repeats, latency_s)
    with ExitStack() as stack:
        service = stack.enter_context(recommending("--workers", "2", TIPBENCH_HOME=str(home)))
        admin = stack.enter_context(serving(TIPBENCH_HOME=str(home)))
        stack.enter_context(load.running(service, admin))
        yield load
    assert not load.failures, load.failures


def _post(client: HTTPConnection, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    client.request("POST", path, json.dumps(body), {**HEADERS, "Content-Type": "application/json"})
    answer = client.getresponse()
    content = answer.read()
    assert answer.status == 200, content
    told: dict[str, Any] = json.loads(content)
    return told


# What a copy of the home holds


def problems_of(home: Path, acknowledged: Acknowledged) -> Iterator[str]:
    """Say everything that is wrong with a copy of the home, and everything of this that it lacks. Delivers journals."""
    yield from _problems_of_states(home, acknowledged.events)
    yield from _problems_of_notes(home, acknowledged.notes)
    settings = Settings({"TIPBENCH_HOME": str(home)})
    yield from [synced.problem for synced in Bench.sync(settings) if synced.problem]
    yield from _problems_of_database(home)
    store = open_store(own_database_url(settings), settings).store
    with closing(store):
        for experiment, cells in acknowledged.cells.items():
            yield from _problems_of_cells(store, experiment, cells)


def _problems_of_states(home: Path, rewarded: Mapping[str, Rewarded]) -> Iterator[str]:
    found: dict[str, Event] = {}
    with closing(FileStore(home / "recommender" / "state", durable=False)) as store:
        try:
            for key in [key for key in list(store.keys()) if key.policy == POLICY]:
                events = {event.id: event for event in store.events(key)}
                yield from _problems_of_sum(store, key, events)
                found |= events
        except StateDamaged as damage:
            yield str(damage)
    logged = {(entry["kind"], _event_of(entry)) for entry in entries(home / "recommender" / "decisions")}
    for event_id, expected in rewarded.items():
        event = found.get(event_id)
        if event is None or (event.chosen, event.reward) != (expected.chosen, expected.reward):
            yield f"event {event_id} of {expected.user_id} is not in its state as it was acknowledged: {event}"
        if {("decision", event_id), ("reward", event_id)} - logged:
            yield f"event {event_id} of {expected.user_id} is not in the log"


def _problems_of_sum(store: FileStore, key: Key, events: Mapping[str, Event]) -> Iterator[str]:
    user_state = store.read_state(key)
    rewards = [event.reward for event in events.values() if event.reward is not None]
    n, total = (user_state.state["n"], user_state.state["reward_sum"]) if user_state else (0, 0.0)
    if n != len(rewards) or abs(total - sum(rewards)) > 1e-9:
        yield f"the state of {key} is not the sum of its events: n {n}, events {len(rewards)}"


def _event_of(entry: Mapping[str, Any]) -> str:
    return str(entry["request"]["event_id"] if entry["kind"] == "decision" else entry["event_id"])


def _problems_of_notes(home: Path, notes: Mapping[str, int]) -> Iterator[str]:
    with closing(sqlite3.connect(home / "server" / "drafts.db")) as database:
        stored = dict(database.execute("SELECT slot, value FROM drafts WHERE part = 'note'").fetchall())
    for slot, number in notes.items():
        if slot not in stored or int(json.loads(stored[slot])) < number:
            yield f"the note {number} of {slot} is lost: {stored.get(slot)}"


def _problems_of_database(home: Path) -> Iterator[str]:
    with closing(sqlite3.connect(home / "mlflow.db")) as database:
        (said,) = database.execute("PRAGMA integrity_check").fetchone()
    if said != "ok":
        yield f"mlflow.db is damaged: {said}"
    known = stored_run_ids(home / "mlflow.db") or set()
    folders = [path for path in (home / "mlflow-artifacts").glob("*/*") if is_run_folder((path.parent.name, path.name))]
    strays = {path.name for path in folders} - known
    if strays:
        yield f"{len(strays)} folders belong to no run"


def _problems_of_cells(store: RunStore, experiment: str, done: int) -> Iterator[str]:
    found = store.find_experiment(experiment)
    runs = store.all_runs(found, {KIND: CELL}) if found else []
    keys = {run.tags["tipbench.cell_key"] for run in runs}
    if len(keys) < done:
        yield f"{experiment}: {len(keys)} of {done} cells are there"
    if len(keys) < len(runs):
        yield f"{experiment}: {len(runs) - len(keys)} cells are there twice"
    for run in runs:
        try:
            if run.status != "FINISHED" or not all(store.text(run, name) for name in _TEXTS):
                yield f"{experiment}: run {run.run_id} is {run.status}, or lacks a text"
        except TipbenchError as error:
            yield f"{experiment}: run {run.run_id} can't be read: {error}"
