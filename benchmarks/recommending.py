"""The recommender's service: how long a score and a reward take over HTTP, and what of it is the state's durability.

    .venv/bin/python -m benchmarks.recommending                 # two minutes
    .venv/bin/python -m benchmarks.recommending --seconds 3     # one minute

1,000 users, 20 candidates with profiles, 12 features. `tipbench recommend serve` with one and two workers is asked by 1
and by 16 clients, which share the machine with it: each scores, then rewards, on a connection that is kept open. Then
the same without HTTP, in this process: into files that are synced, as always, into files that are not, and into a
PostgreSQL on the disk of the temporary folder. A slow disk is told by a bare synced write beside them.
"""

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.integration.postgres_server import PostgresServer

from benchmarks.parts.disk import synced_writes_s
from benchmarks.parts.quick_client import QuickClient
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import served
from benchmarks.parts.table import out, show
from benchmarks.parts.tip_requests import tip_request
from benchmarks.parts.waits import Waits
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.records import Request, Reward
from tipbench.recommender.shadows.runner import Shadows
from tipbench.recommender.store.document import MOST_SETTLED
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Store
from tipbench.recommender.store.postgresql import PostgresStore

KEY = "a-key-for-measuring-and-for-nothing-else"
POLICY = "egreedy/v2"
USERS = 1000
WORKERS = (1, 2)
CLIENTS = (1, 16)
WARM_UP_S = 1.0
PAIRS = 60  # of a score and a reward, of each kind of store in a round
OLD_USERS = 20
_EVENT = b"an-event-id"


@dataclass
class Readings:
    scores: list[float] = field(default_factory=list)  # seconds
    rewards: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def columns(self) -> tuple[str, ...]:
        return *Waits.of(self.scores).columns(), *Waits.of(self.rewards).columns()


async def asked_together(address: str, clients: int, seconds: float) -> Readings:
    readings = Readings()
    bodies = [_score_body(number) for number in range(USERS)]
    events = count()
    begin = time.perf_counter() + WARM_UP_S
    connected = [await QuickClient.connected(address, KEY) for _ in range(clients)]
    drawn = random.Random(7)

    async def one(client: QuickClient) -> None:
        while (started := time.perf_counter()) < begin + seconds:
            number, event = drawn.randrange(USERS), f"{clients}-{next(events)}"
            scored = await client.post(f"/score/{POLICY}", bodies[number].replace(_EVENT, event.encode()))
            between = time.perf_counter()
            reward = {"user_id": _user(number), "event_id": event, "reward": drawn.choice((-0.5, 0.0, 1.0))}
            rewarded = await client.post(f"/reward/{POLICY}", json.dumps(reward).encode())
            ended = time.perf_counter()
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


def over_http(new_folder: Callable[[], Path], seconds: float) -> list[str]:
    """Shows the table; gives what was refused."""
    rows, refused = [], []
    for workers in WORKERS:
        words = ("recommend", "serve", "--workers", str(workers))
        with served(new_folder(), words, {"TIPBENCH_SERVING_KEY": KEY}) as service:
            for clients in CLIENTS:
                readings = asyncio.run(asked_together(service.address, clients, seconds))
                a_second = (len(readings.scores) + len(readings.rewards)) / seconds
                rows.append((str(workers), str(clients), f"{a_second:.0f}", *readings.columns()))
                refused += readings.refused
    columns = ("workers", "clients", "requests/s", "score p50 ms", "p99", "reward p50 ms", "p99")
    show(f"Over HTTP, {USERS:,} users, {seconds:g} s each", columns, rows)
    return refused


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
    out.print(
        f"Durability costs {both[0] - both[1]:.2f} ms of {both[0]:.2f} ms a request ({1 - both[1] / both[0]:.0%}); "
        f"a bare synced write of 4 kB to this disk takes {disk.p50:.2f} ms (p99 {disk.p99:.2f})"
    )


def _together(readings: Readings) -> Sequence[float]:
    return [*readings.scores, *readings.rewards]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for which each is asked over HTTP")
    parser.add_argument("--rounds", type=int, default=15, help="of each store, in turn")
    asked = parser.parse_args()
    with scratch_folders() as new_folder:
        refused = over_http(new_folder, asked.seconds)
        by_store(new_folder, asked.rounds)
    out.print(f"{len(refused)} requests refused (wanted: none) — {'; '.join(sorted(set(refused))[:3]) or 'reached'}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
