"""`tipbench recommend serve` killed (SIGKILL) at 100 random moments while clients score and reward: what is there then?

    .venv/bin/python -m benchmarks.reward_kills                       # five minutes
    .venv/bin/python -m benchmarks.reward_kills --kills 20 --seed 3   # other moments
    .venv/bin/python -m benchmarks.reward_kills --store postgresql    # states in a real PostgreSQL

Every other start has two workers. After each kill the states are read as they lie there: everything that was
acknowledged must be in them, each file whole, and each state the sum of its events, no more and no less. After every
other pair of kills the files that were not synced yet are first taken as a power cut may take them: gone, empty, cut
off, full of zeros, as they were before, half of that and half new, or another user's; the journals have to bring them
back. A PostgreSQL crashes instead. Then the service is started again, and whatever had no answer is sent once more, as
clients do: at the end every event counts once.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.parts.quick_client import QuickClient
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import Served, served
from benchmarks.parts.state_stores import KINDS, StateStore, state_store
from benchmarks.parts.table import out, show
from benchmarks.parts.tip_requests import tip_request
from tipbench.core.errors import StateDamaged
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.store.interface import Event, Key

KEY = "a-key-for-measuring-and-for-nothing-else"
POLICY = "egreedy/v2"
CLIENTS = 8
USERS = 8  # of each start; often two clients want the same state
MOMENTS_S = (0.0, 1.2)  # after the first answer
CANDIDATES = 10
WAYS = ("score, not stored", "score, stored", "reward, not stored", "reward, stored")


@dataclass
class Sent:
    """One event, and how far its client knows that it came."""

    user_id: str
    event_id: str
    number: int
    reward: float
    chosen: str | None = None
    rewarded: bool = False
    statuses: list[str] = field(default_factory=list)  # of all answers to its reward
    refused: str = ""

    @property
    def open(self) -> bool:
        return not (self.rewarded or self.refused)

    def score_body(self) -> bytes:
        request = tip_request(random.Random(self.number), self.user_id, self.event_id, CANDIDATES)
        return json.dumps(request).encode()

    def reward_body(self) -> bytes:
        return json.dumps({"user_id": self.user_id, "event_id": self.event_id, "reward": self.reward}).encode()


class Problem(NamedTuple):
    kind: str
    what: str


async def send(client: QuickClient, sent: Sent) -> None:
    """Both requests, or what has no answer yet of them."""
    if sent.chosen is None and (scored := await _answer(client, "/score", sent.score_body(), sent)):
        sent.chosen = scored["chosen"]
    if sent.chosen is not None and (rewarded := await _answer(client, "/reward", sent.reward_body(), sent)):
        sent.statuses.append(rewarded["status"])
        sent.rewarded = True


async def _answer(client: QuickClient, path: str, body: bytes, sent: Sent) -> dict[str, str]:
    reply = await client.post(f"{path}/{POLICY}", body)
    if reply.status != 200:
        sent.refused = f"{path} answered {reply.status}: {reply.body.decode()}"
        return {}
    answer: dict[str, str] = json.loads(reply.body)
    return answer


class Clients:
    """All that was ever sent, and by whom."""

    def __init__(self, seed: int) -> None:
        self._drawn = random.Random(seed)
        self._numbers = count()
        self.sent: list[Sent] = []

    async def until_killed(self, service: Served, start: int) -> None:
        """First what had no answer from the service before, then new events, until a random moment."""
        first = await QuickClient.connected(service.address, KEY)
        for unanswered in [event for event in self.sent if event.open]:
            await send(first, unanswered)
        await send(first, self._next(start))
        first.close()
        tasks = [asyncio.create_task(self._go_on(service.address, start)) for _ in range(CLIENTS)]
        await asyncio.sleep(self._drawn.uniform(*MOMENTS_S))
        workers = psutil.Process(service.process.pid).children(recursive=True)
        service.process.kill()
        await asyncio.gather(*tasks)
        service.process.wait()
        psutil.wait_procs(workers, 20)  # they end with it, and until then their journals are in use

    async def finish(self, service: Served) -> None:
        client = await QuickClient.connected(service.address, KEY)
        for event in [event for event in self.sent if event.open]:
            await send(client, event)
        client.close()

    async def _go_on(self, address: str, start: int) -> None:
        try:
            client = await QuickClient.connected(address, KEY)
            while True:
                await send(client, self._next(start))
        except (OSError, EOFError):
            return  # it was killed

    def _next(self, start: int) -> Sent:
        number = next(self._numbers)
        reward = round(self._drawn.uniform(-1, 1), 6)  # each its own, so that sums tell which were learned
        self.sent.append(Sent(f"start{start}-user{number % USERS}", f"e{number}", number, reward))
        return self.sent[-1]


class Stored:
    """What lies there, read without the service."""

    def __init__(self, states: StateStore, sent: list[Sent]) -> None:
        self.problems: set[Problem] = set()
        self._store = states.open_alone()
        self.events: dict[str, Event] = {}
        for user_id in sorted({event.user_id for event in sent}):
            try:
                self._look_at(Key(user_id, POLICY))
            except StateDamaged as damage:
                self._found("states that are not whole", str(damage))
        self._store.close()
        for event in sent:
            self._compare(event, self.events.get(event.event_id))

    def _look_at(self, key: Key) -> None:
        """A state has to be the sum of its events. None of them is forgotten: there are too few."""
        user_state, events = self._store.read_state(key), self._store.events(key)
        rewards = [event.reward for event in events if event.reward is not None]
        n, total = (user_state.state["n"], user_state.state["reward_sum"]) if user_state else (0, 0.0)
        if n != len(rewards) or abs(total - sum(rewards)) > 1e-9:
            self._found("states that are not the sum of their events", f"{key}: n {n}, events {len(rewards)}")
        self.events.update((event.id, event) for event in events)

    def _compare(self, sent: Sent, event: Event | None) -> None:
        if sent.chosen is not None and (event is None or event.chosen != sent.chosen):
            self._found("acknowledged scores lost", sent.event_id)
        if sent.rewarded and (event is None or event.reward != sent.reward):
            self._found("acknowledged rewards lost", sent.event_id)
        if sent.refused:
            self._found("requests refused", sent.refused)
        if sent.statuses.count("applied") > 1:
            self._found("rewards learned twice", sent.event_id)

    def _found(self, kind: str, what: str) -> None:
        self.problems.add(Problem(kind, what))


def log_problems(home: Path, sent: list[Sent]) -> set[Problem]:
    """The decision log must have all of it too; the last line of a killed process may be torn."""
    logged = {(entry["kind"], _event_of(entry)) for entry in entries(home / "recommender" / "decisions")}
    wanted = {(kind, event.event_id) for event in sent for kind in ("decision", "reward")}
    return {Problem(f"{kind}s missing in the log", event_id) for kind, event_id in wanted - logged}


def _event_of(entry: dict[str, Any]) -> str:
    return str(entry["request"]["event_id"] if entry["kind"] == "decision" else entry["event_id"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    parser.add_argument("--store", choices=KINDS, default=KINDS[0])
    asked = parser.parse_args()
    problems: set[Problem] = set()
    on_their_way: Counter[str] = Counter()
    damaged = 0
    drawn = random.Random(asked.seed)
    clients = Clients(asked.seed)
    with scratch_folders() as new_folder, state_store(asked.store, home := new_folder()) as states:
        words, settings = ("recommend", "serve"), {"TIPBENCH_SERVING_KEY": KEY, **states.environment}
        for start in range(asked.kills):
            states.note()
            with served(home, (*words, "--workers", str(1 + start % 2)), settings) as service:
                asyncio.run(clients.until_killed(service, start))
            if start // 2 % 2:
                damaged += states.cut_power(drawn)
            stored = Stored(states, clients.sent)
            problems |= stored.problems
            on_their_way += Counter(_where(event, stored) for event in clients.sent if event.open)
            if (start + 1) % 10 == 0:
                out.print(f"{start + 1} kills, {len(clients.sent):,} events", style="dim")
        with served(home, words, settings) as service:
            asyncio.run(clients.finish(service))
        problems |= Stored(states, clients.sent).problems | log_problems(home, clients.sent)
    rows = [(where, str(on_their_way[where])) for where in WAYS]
    show("Requests without an answer when the kill came", ("how far they were", "times"), rows)
    out.print(f"{asked.kills // 2} power cuts may have hit {damaged} states")
    return 0 if _verdict(asked.kills, len(clients.sent), problems) else 1


def _where(sent: Sent, stored: Stored) -> str:
    event = stored.events.get(sent.event_id)
    if sent.chosen is None:
        return WAYS[0] if event is None else WAYS[1]
    return WAYS[2] if event is None or event.reward is None else WAYS[3]


def _verdict(kills: int, events: int, problems: set[Problem]) -> bool:
    kinds = Counter(problem.kind for problem in problems)
    found = ", ".join(f"{times} {kind}" for kind, times in kinds.items())
    for problem in sorted(problems)[:5]:
        out.print(f"{problem.kind}: {problem.what}")
    out.print(f"{kills} kills, {events:,} events scored and rewarded: {found or 'nothing lost, damaged or doubled'}")
    return not problems


if __name__ == "__main__":
    sys.exit(main())
