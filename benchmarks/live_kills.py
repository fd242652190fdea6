"""Promotions by a process that is killed (SIGKILL) 50 times while two workers serve: do they agree on who is live?

    .venv/bin/python -m benchmarks.live_kills                       # two minutes
    .venv/bin/python -m benchmarks.live_kills --kills 10 --seed 3   # other moments
    .venv/bin/python -m benchmarks.live_kills --store postgresql    # states and history in a real PostgreSQL: four

The acts go round: `ucb/v3` with one prior is promoted, then the same policy with another prior, and both are rolled
back. Every fifth kill also hits a worker of the service. Clients ask for the live policy all the time. Promised: every
answer comes from a policy and a prior that was live at some moment between request and answer; no answer comes from an
older act than an answer that was there before its request was sent; and the history is whole after every kill. A
worker asks PostgreSQL once a second, so there a request may be taken as sent a second earlier; after each kill nothing
changes for longer than that. The exit status is 0 if all of it holds.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.integration.recommender.databases import Where

from benchmarks.parts.quick_client import QuickClient
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import Served, served
from benchmarks.parts.state_stores import KINDS, state_store
from benchmarks.parts.table import out, show
from benchmarks.parts.tip_requests import tip_request
from tipbench.recommender.features.v3 import DENSE, NAMES
from tipbench.recommender.promotion.interface import FIRST, Act, live_history

KEY = "a-key-for-measuring-and-for-nothing-else"
CLIENTS = 4
MOMENTS_S = (0.02, 0.6)  # after the writer's first act
PAUSE_S = 0.01  # between acts
QUIET = 1.5  # times as long as workers may be behind, after a kill
_ROOT = Path(__file__).parents[1]


class Written(NamedTuple):
    """An act, and between which moments it became what is live."""

    identity: str
    began: float
    done: float


class Answered(NamedTuple):
    identity: str
    sent: float
    came: float


def prior_content(number: int) -> dict[str, object]:
    """A prior like λ = 1, but for its noise."""
    return {
        "schema": 1,
        "feature_version": "v3",
        "users": 100,
        "rewards": 100,
        "first_ms": 1,
        "last_ms": 2,
        "mean_reward": 0.0,
        "mean": dict.fromkeys(NAMES[:DENSE], 0.0),
        "precision": np.eye(DENSE)[np.triu_indices(DENSE)].tolist(),
        "intercept_precision": 1.0,
        "noise": 1.0 + number,
        "tips": {},
    }


def write_acts(where: Where, identities: list[str]) -> None:
    """Go round for ever: promote each, then roll all of them back; say when each act began and was done."""
    promotions = where.open().promotions
    acts = promotions.history()
    while True:
        stack = live_history(acts, "here")
        climbing = not acts or (acts[-1].act == "promote") == (len(stack) <= len(identities))
        climbing = len(stack) == 1 or (climbing and len(stack) <= len(identities))
        to = identities[len(stack) - 1] if climbing else stack[-2]
        act = Act(
            at_ms=round(time.time() * 1000),
            act="promote" if climbing else "rollback",
            left=stack[-1],
            to=to,
            gate="0" * 16 if climbing else None,
            replay=None,
            candidate={"name": to},
        )
        print(json.dumps(["began", to, time.monotonic()]), flush=True)
        promotions.append(act, len(acts))
        print(json.dumps(["done", to, time.monotonic()]), flush=True)
        acts = (*acts, act)
        time.sleep(PAUSE_S)


async def killed_writer(where: Where, identities: list[str], drawn: random.Random, behind_s: float) -> list[Written]:
    """Let a writer work until a random moment; return its acts, the last of which may not have been stored."""
    command = [sys.executable, "-m", "benchmarks.live_kills", "--write", *where, *identities]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout
    lines = [await process.stdout.readline()]
    await asyncio.sleep(drawn.uniform(*MOMENTS_S))
    process.kill()
    lines += (await process.stdout.read()).splitlines()
    await process.wait()
    await asyncio.sleep(QUIET * behind_s)  # until then PostgreSQL has stored its last act, or never will
    killed = time.monotonic()
    written: list[Written] = []
    for line in lines:
        try:
            kind, identity, at = json.loads(line)
        except ValueError:
            continue  # torn by the kill
        if kind == "began":
            written.append(Written(identity, at, killed))
        else:
            written[-1] = written[-1]._replace(done=at)
    return written


class Clients:
    """Ask for the live policy all the time, over connections that both workers accept."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.answers: list[Answered] = []
        self.problems: Counter[str] = Counter()
        self._stopped = False
        self._number = 0

    async def ask_until_stopped(self) -> None:
        await asyncio.gather(*(self._ask(random.Random(number)) for number in range(CLIENTS)))

    def stop(self) -> None:
        self._stopped = True

    async def _ask(self, drawn: random.Random) -> None:
        while not self._stopped:
            try:
                client = await QuickClient.connected(self._address, KEY)
                for _ in range(20):  # then another connection, perhaps to the other worker
                    await self._ask_once(client, drawn)
                client.close()
            except (OSError, EOFError):
                await asyncio.sleep(0.05)  # its worker was killed

    async def _ask_once(self, client: QuickClient, drawn: random.Random) -> None:
        self._number += 1
        body = json.dumps(tip_request(drawn, f"u{self._number % 8}", f"e{self._number}", 5)).encode()
        sent = time.monotonic()
        reply = await client.post("/score", body)
        came = time.monotonic()
        if reply.status != 200:
            self.problems[f"answers with {reply.status}: {reply.body.decode()[:200]}"] += 1
            return
        answer = json.loads(reply.body)
        identity = answer["policy"] + (f"@{answer['prior']}" if answer["prior"] else "")
        self.answers.append(Answered(identity, sent, came))


def kill_a_worker(service: Served, drawn: random.Random) -> None:
    children = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children").read_text().split()
    workers = [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
    os.kill(drawn.choice(workers), signal.SIGKILL)


async def measure(
    service: Served, where: Where, identities: list[str], kills: int, seed: int
) -> tuple[list[Written], Clients, int]:
    drawn = random.Random(seed)
    clients = Clients(service.address)
    asking = asyncio.create_task(clients.ask_until_stopped())
    acts = [Written(FIRST, 0.0, 0.0)]
    unfinished = 0
    promotions = where.open(durable=False).promotions
    for number in range(kills):
        written = await killed_writer(where, identities, drawn, promotions.poll_interval_s)
        stored = promotions.history()  # raises if it is damaged
        lost = len(acts) - 1 + len(written) - len(stored)
        if lost not in (0, 1):
            clients.problems["acts that were acknowledged and are not there, or the other way round"] += 1
        unfinished += lost
        acts += written[: len(written) - lost]
        if [act.to for act in stored] != [act.identity for act in acts[1:]]:
            clients.problems["histories that are not what was written"] += 1
        if number % 5 == 4:
            kill_a_worker(service, drawn)
    await asyncio.sleep(0.3)
    clients.stop()
    await asking
    return acts, clients, unfinished


def disagreements(acts: list[Written], answers: list[Answered], behind_s: float) -> Counter[str]:
    """Hold every answer against what was live between its request and its arrival, or so much earlier."""
    answers = [answer._replace(sent=answer.sent - behind_s) for answer in answers]
    found: Counter[str] = Counter()
    began = np.array([act.began for act in acts])
    ended = np.array([*(act.done for act in acts[1:]), np.inf])  # when the next act was in effect for sure
    newest_known: list[tuple[float, int]] = []  # (moment, oldest act that an answer by then can be from)
    for answer in sorted(answers, key=lambda one: one.came):
        possible = np.flatnonzero((began <= answer.came) & (ended >= answer.sent))
        fitting = [int(place) for place in possible if acts[place].identity == answer.identity]
        if not fitting:
            found["answers from a policy that was not live"] += 1
            continue
        newest_known.append((answer.came, fitting[0]))
    moments = np.array([moment for moment, _ in newest_known])
    highest = np.maximum.accumulate([place for _, place in newest_known]) if newest_known else np.empty(0)
    for answer in answers:
        before = int(np.searchsorted(moments, answer.sent)) - 1
        possible = np.flatnonzero((began <= answer.came) & (ended >= answer.sent))
        fitting = [int(place) for place in possible if acts[place].identity == answer.identity]
        if before >= 0 and fitting and fitting[-1] < highest[before]:
            found["answers from an older act than one that was answered before"] += 1
    return found


def main() -> int:
    if sys.argv[1:2] == ["--write"]:
        write_acts(Where(*sys.argv[2:4]), sys.argv[4:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    parser.add_argument("--store", choices=KINDS, default=KINDS[0])
    asked = parser.parse_args()
    with scratch_folders() as new_folder, state_store(asked.store, home := new_folder()) as states:
        store = states.where.open()
        identities = [f"ucb/v3@{store.priors.put(prior_content(number))}" for number in range(2)]
        words, settings = ("recommend", "serve", "--workers", "2"), {"TIPBENCH_SERVING_KEY": KEY, **states.environment}
        with served(home, words, settings) as service:
            acts, clients, unfinished = asyncio.run(measure(service, states.where, identities, asked.kills, asked.seed))
        behind_s = store.promotions.poll_interval_s
    problems = clients.problems + disagreements(acts, clients.answers, behind_s)
    counted = Counter(answer.identity for answer in clients.answers)
    show("Answers", ("from", "times"), [(name, f"{times:,}") for name, times in sorted(counted.items())])
    for problem, times in problems.items():
        out.print(f"{times} {problem}")
    out.print(
        f"{asked.kills} kills, {len(acts) - 1:,} acts ({unfinished} more were not stored when the kill came), "
        f"{len(clients.answers):,} answers of two workers: {'broken' if problems else 'all agree'}"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
