"""The recommender's service: how long a score and a reward take over HTTP, and what of it is the state's durability.

    .venv/bin/python -m benchmarks.recommending                        # five minutes
    .venv/bin/python -m benchmarks.recommending --seconds 1 --rounds 2 # one and a half
    .venv/bin/python -m benchmarks.recommending --before FOLDER        # beside the tipbench in another checkout

1,000 users, 20 candidates with profiles, 12 features. `tipbench recommend serve` with one and two workers is asked by 1
and by 16 clients, which share the machine with it: each scores, then rewards, on a connection that is kept open. Beside
it, in turns, and behind the same server (uvicorn with uvloop and httptools): plain ASGI and a FastAPI handler that do
nothing, and Vowpal Wabbit, which stores nothing. Then as many users as ten and a hundred times that, and 5 to 200
candidates. Then the same without HTTP, in this process: into files that are synced, as always, into files that are not,
and into a PostgreSQL on the disk of the temporary folder. A slow disk is told by a bare synced write beside them.
Medians of the rounds.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import chain, count
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import psutil
from tests.integration.postgres_server import PostgresServer

from benchmarks.bandit import VOWPAL_WABBIT
from benchmarks.parts.checkouts import add_before, checkouts
from benchmarks.parts.disk import synced_writes_s
from benchmarks.parts.environments import interpreter_with
from benchmarks.parts.quick_client import QuickClient
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import served, started
from benchmarks.parts.table import conclude, show, verdict
from benchmarks.parts.tip_requests import tip_request
from benchmarks.parts.waits import Waits
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.records import Request, Reward
from tipbench.recommender.shadows.runner import Shadows
from tipbench.recommender.store.document import MOST_SETTLED
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, Store
from tipbench.recommender.store.postgresql import PostgresStore

KEY = "a-key-for-measuring-and-for-nothing-else"
POLICY = "egreedy/v2"
USERS = 1000
WORKERS = (1, 2)
CLIENTS = (1, 16)
WARM_UP_S = 1.0
PAIRS = 60  # of a score and a reward, of each kind of store in a round
OLD_USERS = 20
GROWTH = (1_000, 10_000, 100_000)
MOST_EXPONENT = 0.2
CANDIDATES = (5, 20, 50, 200)
_EVENT, _USER = b"an-event-id", b"a-user-id"


@dataclass
class Readings:
    scores: list[float] = field(default_factory=list)  # seconds
    rewards: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    asked: int = 0  # with those that are not measured yet

    def columns(self) -> tuple[str, ...]:
        return *Waits.of(self.scores).columns(), *Waits.of(self.rewards).columns()


async def asked_together(address: str, clients: int, seconds: float, users: int = USERS) -> Readings:
    readings = Readings()
    bodies = [_score_body(number).replace(_user(number).encode(), _USER) for number in range(USERS)]
    connected = [await QuickClient.connected(address, KEY) for _ in range(clients)]
    drawn, run = random.Random(), f"{time.time_ns():x}"
    events = count()
    begin = time.perf_counter() + WARM_UP_S

    async def one(client: QuickClient) -> None:
        while (started := time.perf_counter()) < begin + seconds:
            number, event = drawn.randrange(users), f"{run}-{next(events)}"
            body = bodies[number % USERS].replace(_USER, _user(number).encode()).replace(_EVENT, event.encode())
            scored = await client.post(f"/score/{POLICY}", body)
            between = time.perf_counter()
            reward = {"user_id": _user(number), "event_id": event, "reward": drawn.choice((-0.5, 0.0, 1.0))}
            rewarded = await client.post(f"/reward/{POLICY}", json.dumps(reward).encode())
            ended = time.perf_counter()
            readings.asked += 2
            readings.refused.extend(
                f"{said.status}: {said.body!r}" for said in (scored, rewarded) if said.status != 200
            )
            if started >= begin:
                readings.scores.append(between - started)
                readings.rewards.append(ended - between)
        client.close()

    await asyncio.gather(*(one(client) for client in connected))
    return readings


def _user(number: int) -> str:
    return f"user-{number}"


def _score_body(number: int) -> bytes:
    return json.dumps(tip_request(random.Random(number), _user(number), _EVENT.decode())).encode()


class Round(NamedTuple):
    a_second: float
    waits: Waits  # of scores and rewards together
    processor_ms: float  # of the service, for each request

    @classmethod
    def of(cls, readings: Readings, seconds: float, processor_s: float) -> "Round":
        both = [*readings.scores, *readings.rewards]
        return cls(len(both) / seconds, Waits.of(both), processor_s * 1000 / readings.asked)


@dataclass
class Service:
    """One of those that are asked in turns."""

    name: str
    address: str
    process: psutil.Process
    users: int = USERS
    rounds: dict[int, list[Round]] = field(default_factory=dict)  # by the number of clients
    refused: list[str] = field(default_factory=list)

    def ask(self, clients: int, seconds: float) -> None:
        before = self._processor_s
        readings = asyncio.run(asked_together(self.address, clients, seconds, self.users))
        self.refused += readings.refused
        self.rounds.setdefault(clients, []).append(Round.of(readings, seconds, self._processor_s - before))

    def middle(self, clients: int) -> Round:
        rounds = self.rounds[clients]
        p50, p99 = (median(one.waits[at] for one in rounds) for at in (0, 1))
        processor_ms = median(one.processor_ms for one in rounds)
        return Round(median(one.a_second for one in rounds), Waits(p50, p99), processor_ms)

    @property
    def mb(self) -> float:
        """The memory that it takes, with its workers."""
        return sum(one.memory_info().rss for one in self._processes) / 1e6

    def row(self) -> tuple[str, ...]:
        rounds = [self.middle(clients) for clients in CLIENTS]
        figures = ((f"{one.a_second:.0f}", *one.waits.columns()) for one in rounds)
        return self.name, *chain(*figures), f"{rounds[-1].processor_ms:.2f}", f"{self.mb:.0f}"

    @property
    def _processes(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]

    @property
    def _processor_s(self) -> float:
        return sum(sum(one.cpu_times()[:2]) for one in self._processes)


def started_services(new_folder: Callable[[], Path], before: Path | None, running: ExitStack) -> list[Service]:
    def start(name: str, command: Sequence[str], **environment: str) -> None:
        settings = {"TIPBENCH_SERVING_KEY": KEY, **environment}
        service = running.enter_context(started(command, new_folder(), settings))
        services.append(Service(name, service.address, psutil.Process(service.process.pid)))

    services: list[Service] = []
    server = [f"{name}=={version(name)}" for name in ("uvicorn", "uvloop", "httptools")]
    with_peer = interpreter_with("vowpal-wabbit-served", [*VOWPAL_WABBIT, *server])
    small = str(Path(__file__).parent / "parts" / "small_services.py")
    for workers in WORKERS:
        for one in checkouts(before):
            words = ("recommend", "serve", "--port", "0", "--workers", str(workers))
            start(f"{one.name}, {workers} worker{'s'[: workers - 1]}", [*one.command, *words], **one.environment)
    start("FastAPI handler that does nothing", (sys.executable, small, "empty"))
    start("plain ASGI that does nothing", (sys.executable, small, "bare"))
    start("Vowpal Wabbit, nothing stored", (str(with_peer), small, "vowpal-wabbit"))
    return services


def over_http(new_folder: Callable[[], Path], seconds: float, rounds: int, before: Path | None) -> bool:
    with ExitStack() as running:
        services = started_services(new_folder, before, running)
        for _ in range(rounds):
            for clients in CLIENTS:
                for service in services:
                    service.ask(clients, seconds)
        rows = [service.row() for service in services]
    each = ("requests/s", "p50 ms", "p99")
    columns = ("service", *(f"{clients}: {one}" for clients in CLIENTS for one in each), "processor ms", "MB")
    show(f"Over HTTP, {USERS:,} users, 1 and 16 clients, medians of {rounds} rounds of {seconds:g} s", columns, rows)
    ours, many = services[0], services[0].middle(16)
    reached = [
        verdict("1 worker, 16 clients", many.a_second, 1000, " requests/s", ".0f"),
        verdict("the same: 60 ms are so many times its p99", 60 / many.waits.p99, 1),
        verdict("1 worker, 1 client: 2 ms are so many times its p50", 2 / ours.middle(1).waits.p50, 1),
    ]
    return _none_refused(services) and all(reached)


def _none_refused(services: Sequence[Service]) -> bool:
    refused = [reason for service in services for reason in service.refused]
    conclude(f"{len(refused)} requests refused (wanted: none) — {'; '.join(sorted(set(refused))[:3]) or 'reached'}")
    return not refused


def by_users(new_folder: Callable[[], Path], seconds: float, rounds: int) -> bool:
    """The same for more users, all of whom are known: does a request take longer, or the service more memory?"""
    with ExitStack() as running:
        services = []
        for users in GROWTH:
            home = new_folder()
            _fill(home, users)
            address, process = running.enter_context(
                served(home, ("recommend", "serve"), {"TIPBENCH_SERVING_KEY": KEY})
            )
            services.append(Service(f"{users:,}", address, psutil.Process(process.pid), users))
        for _ in range(rounds):
            for service in services:
                service.ask(16, seconds)
        rows = []
        for service in services:
            one = service.middle(16)
            rows.append((service.name, f"{one.a_second:.0f}", *one.waits.columns(), f"{service.mb:.0f}"))
    show("By users, 16 clients, 1 worker", ("users", "requests/s", "p50 ms", "p99", "MB"), rows)
    times = [service.middle(16).waits.p50 for service in services]
    exponent = float(np.polyfit(np.log(GROWTH), np.log(times), 1)[0])
    reached = exponent < MOST_EXPONENT
    conclude(
        f"The time of a request grows with the users to the power of {exponent:.2f} (wanted: below {MOST_EXPONENT}) — "
        f"{'reached' if reached else 'fell short'}"
    )
    return _none_refused(services) and reached


def by_candidates(new_folder: Callable[[], Path], rounds: int) -> None:
    """What a score takes of the processor, from its JSON on, without HTTP and without the disk."""
    folder = new_folder()
    asked = InProcess(folder, FileStore(folder / "state", durable=False), 1)
    drawn, times = random.Random(7), []
    for candidates in CANDIDATES:
        seconds = []
        for number in range(rounds * PAIRS):
            body = json.dumps(tip_request(drawn, _user(0), f"c{candidates}-{number}", candidates)).encode()
            began = time.thread_time()
            asked.score(body)
            seconds.append(time.thread_time() - began)
        times.append(median(seconds))
    asked.close()
    rows = [(str(number), f"{took * 1000:.2f}") for number, took in zip(CANDIDATES, times, strict=True)]
    show("By candidates, in this process", ("candidates", "processor ms of a score"), rows)
    exponent = float(np.polyfit(np.log(CANDIDATES), np.log(times), 1)[0])
    conclude(f"The time of a score grows with the candidates to the power of {exponent:.2f}")


def _fill(home: Path, users: int) -> None:
    """Every user gets the same state with a dozen events."""
    folder = home / "recommender" / "state"
    one = InProcess(home / "one", FileStore(home / "one" / "state", durable=False), 1)
    for _ in range(12):
        one.ask(1)
    one.close()
    source, store = FileStore(home / "one" / "state", durable=False), FileStore(folder, durable=False)
    key = Key(_user(0), POLICY)
    user_state, events = source.read_state(key), source.events(key)
    for number in range(users):
        store.write(Key(_user(number), POLICY), user_state, events)
    for opened in (source, store):
        opened.close()


class InProcess:
    """The recommender without HTTP, asked again and again."""

    def __init__(self, folder: Path, store: Store, users: int = USERS) -> None:
        self._folder = folder
        self._users = users
        self._drawn = random.Random(7)
        self._requests = [Request.model_validate_json(_score_body(number)) for number in range(users)]
        self._events = count()
        self._recommender = self._over(store)
        self.readings = Readings()

    def _over(self, store: Store) -> Recommender:
        log = DecisionLog(self._folder / "log", time.time)
        return Recommender(SERVED, "egreedy", store, log, time.time, Shadows())

    def fill(self, quick: Store, events: int) -> None:
        """Every user gets so many events, by another way to the same store."""
        asked, self._recommender = self._recommender, self._over(quick)
        for number in range(self._users):
            for _ in range(events):
                self._pair(number)
        self._recommender.close()
        self._recommender, self.readings = asked, Readings()

    def ask(self, pairs: int) -> None:
        for _ in range(pairs):
            self._pair(self._drawn.randrange(self._users))

    def score(self, body: bytes) -> None:
        self._recommender.score(POLICY, Request.model_validate_json(body))

    def close(self) -> None:
        self._recommender.close()

    def _pair(self, number: int) -> None:
        event = f"e{next(self._events)}"
        request = self._requests[number].model_copy(update={"event_id": event})
        reward = Reward(user_id=_user(number), event_id=event, reward=self._drawn.choice((-0.5, 0.0, 1.0)))
        started = time.perf_counter()
        self._recommender.score(POLICY, request)
        between = time.perf_counter()
        self._recommender.reward(POLICY, reward)
        self.readings.scores.append(between - started)
        self.readings.rewards.append(time.perf_counter() - between)


def by_store(new_folder: Callable[[], Path], rounds: int) -> None:
    """In turns, so that a disk that is slow for a while is slow for all."""
    folders = [new_folder() for _ in range(4)]
    synced = InProcess(folders[0], FileStore(folders[0] / "state"))
    loose = InProcess(folders[1], FileStore(folders[1] / "state", durable=False))
    old = InProcess(folders[2], FileStore(folders[2] / "state"), OLD_USERS)
    old.fill(FileStore(folders[2] / "state", durable=False), MOST_SETTLED)
    bare, disk = new_folder(), list[float]()
    with PostgresServer.start(durable=True) as server:
        kinds = {
            "files, synced": synced,
            "files, not synced": loose,
            f"files, synced, {MOST_SETTLED} events a user": old,
            "PostgreSQL, synced": InProcess(folders[3], PostgresStore(server.url.replace("+psycopg2", ""))),
        }
        for _ in range(rounds):
            for kind in kinds.values():
                kind.ask(PAIRS)
            disk += synced_writes_s(bare, PAIRS)
        for kind in kinds.values():
            kind.close()
    rows = [(name, *kind.readings.columns()) for name, kind in kinds.items()]
    columns = ("store", "score p50 ms", "p99", "reward p50 ms", "p99")
    show(f"In this process, one after the other, {rounds * PAIRS} of each", columns, rows)
    _tell_durability(synced, loose, Waits.of(disk))


def _tell_durability(synced: InProcess, loose: InProcess, disk: Waits) -> None:
    both = [Waits.of(_together(kind.readings)).p50 for kind in (synced, loose)]
    conclude(
        f"Durability costs {both[0] - both[1]:.2f} ms of {both[0]:.2f} ms a request ({1 - both[1] / both[0]:.0%}); "
        f"a bare synced write of 4 kB to this disk takes {disk.p50:.2f} ms (p99 {disk.p99:.2f})"
    )


def _together(readings: Readings) -> Sequence[float]:
    return [*readings.scores, *readings.rewards]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4.0, help="for which each is asked over HTTP in a round")
    parser.add_argument("--rounds", type=int, default=5)
    add_before(parser)
    parser.add_argument("--only", choices=("http", "users", "candidates", "stores"), help="of the tables")
    asked = parser.parse_args()
    reached = []
    with scratch_folders() as new_folder:
        if asked.only in (None, "http"):
            reached.append(over_http(new_folder, asked.seconds, asked.rounds, asked.before))
        if asked.only in (None, "users"):
            reached.append(by_users(new_folder, asked.seconds, asked.rounds))
        if asked.only in (None, "candidates"):
            by_candidates(new_folder, asked.rounds)
        if asked.only in (None, "stores"):
            by_store(new_folder, 3 * asked.rounds)
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
