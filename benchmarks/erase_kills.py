"""`tipbench recommend erase` killed (SIGKILL) at 50 random moments while others are served: is the user gone, alone?

    .venv/bin/python -m benchmarks.erase_kills                       # half an hour on a busy machine
    .venv/bin/python -m benchmarks.erase_kills --kills 10 --seed 3   # other moments

A service with two workers and a shadow serves all the time. Each time a user is served, then erased; the command is
killed, and a fit of a prior must find all of the user or nothing. Then the command is run again: no file may have the
id in it, nor its name. In the end every other user's events must be in the state and in the log, once.
"""

import argparse
import asyncio
import os
import random
import sys
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path

from benchmarks.parts.quick_client import QuickClient
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.served import served
from benchmarks.parts.state_stores import state_store
from benchmarks.parts.table import out, show
from benchmarks.reward_kills import KEY, Problem, Sent, Stored, send
from tipbench.core.errors import StateError
from tipbench.core.paths import decisions_folder, recommender_folder, state_folder
from tipbench.recommender.log.rewriting import count_lines
from tipbench.recommender.log.segmented_log import entries, segments
from tipbench.recommender.replay.rounds import load_rounds
from tipbench.recommender.user_traces import lines_of

SHADOW = "egreedy-v2-shadow"
CLIENTS = 4
USERS = 20  # of each kill, so that no state has to forget events
EVENTS = 30  # of a user who is erased
LATEST_S = 1.3  # after it has said what it found
PAUSE_S = 0.004  # between two events of a client
STAGES = ("not begun", "states still there", "states gone, lines still there", "only the reset is left", "all gone")


class Others:
    """Clients that score and reward all the time, for other users."""

    def __init__(self, seed: int) -> None:
        self.round = 0
        self.sent: list[Sent] = []
        self._drawn = random.Random(seed)
        self._numbers = count()
        self._stopped = asyncio.Event()

    async def go_on(self, address: str) -> None:
        client = await QuickClient.connected(address, KEY)
        while not self._stopped.is_set():
            number = next(self._numbers)
            user = f"round{self.round}-user{number % USERS}"
            event = Sent(user, f"e{number}", number, round(self._drawn.uniform(-1, 1), 6))
            self.sent.append(event)
            while event.open:
                try:
                    await send(client, event)
                except (OSError, EOFError):  # it was idle for too long, on a busy machine
                    client = await QuickClient.connected(address, KEY)
            await asyncio.sleep(PAUSE_S)
        client.close()

    def stop(self) -> None:
        self._stopped.set()


class Erasing:
    """Erases one user after the other from a home that is being served."""

    def __init__(self, home: Path, address: str, seed: int) -> None:
        self.problems: set[Problem] = set()
        self.stages: Counter[str] = Counter()
        self.half_written = 0
        self._home, self._address = home, address
        self._drawn = random.Random(seed)

    async def erase(self, user: str) -> None:
        """Killed once, then to its end."""
        client = await QuickClient.connected(self._address, KEY)
        for number in range(EVENTS):
            await send(client, Sent(user, f"{user}:{number}", number, 0.5))
        client.close()
        command = await self._start(user)
        assert command.stdout
        await command.stdout.readline()  # what it has found
        await asyncio.sleep(LATEST_S * self._drawn.random() ** 3)  # most changes come early, then it waits for others
        with suppress(ProcessLookupError):
            command.kill()
        await command.wait()
        await asyncio.to_thread(self._look, user)
        again = await self._start(user)
        said, _ = await again.communicate()
        if again.returncode:
            self.problems.add(Problem("runs again that failed", said.decode()))
        for path in await asyncio.to_thread(files_with, recommender_folder(self._home), user):
            self.problems.add(Problem("files with a trace", f"{user} in {path}"))

    async def _start(self, user: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tipbench", "recommend", "erase", user, "--yes"),
            env={**os.environ, "TIPBENCH_HOME": str(self._home), "PYTHONUNBUFFERED": "1"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    def _look(self, user: str) -> None:
        """How far it was, and what the next prior would be fitted to."""
        log = decisions_folder(self._home)
        lines = count_lines(log, lines_of(user, resets=False))
        resets = count_lines(log, lines_of(user)) - lines
        states = list(state_folder(self._home).glob(f"{user}_*.json"))
        stage = 0 if not resets and states else 1 if states else 2 if lines else 3 if resets else 4
        self.stages[STAGES[stage]] += 1
        self.half_written += len(list(log.glob(".*.part"))) + len(set(log.glob("*.jsonl")) - set(segments(log)))
        rounds = load_rounds(log, for_weights=False)
        with suppress(StateError):  # the service goes on, but nobody rewrites its log now
            known = sum(one.request.user_id == user for one in rounds.read(rounds.users >= 0))
            if known not in (0, EVENTS) or (known and stage):
                self.problems.add(
                    Problem("users of whom a prior would know a part", f"{user}: {known} events, {stage}")
                )


def files_with(folder: Path, user: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if user in path.name or user.encode() in _content(path)]


def _content(path: Path) -> bytes:
    with suppress(FileNotFoundError):  # of the service, which goes on
        return path.read_bytes()
    return b""


async def measured(home: Path, address: str, kills: int, seed: int) -> tuple[Erasing, list[Sent]]:
    others, erasing = Others(seed), Erasing(home, address, seed)
    tasks = [asyncio.create_task(others.go_on(address)) for _ in range(CLIENTS)]
    for number in range(kills):
        others.round = number
        await erasing.erase(f"leaves-{number}-for-good")
        if (number + 1) % 10 == 0:
            out.print(f"{number + 1} kills, {len(others.sent):,} events of others", style="dim")
    others.stop()
    await asyncio.gather(*tasks)
    return erasing, others.sent


def whole(home: Path, sent: list[Sent]) -> set[Problem]:
    """Everything of other users has to be in states and log, and in the log once."""
    with state_store("files", home) as states:
        problems = {*Stored(states, sent).problems}
    logged = Counter(
        (entry["kind"], entry["request"]["event_id"] if entry["kind"] == "decision" else entry["event_id"])
        for entry in entries(decisions_folder(home))
    )
    for event in sent:
        for kind in ("decision", "reward"):
            times = logged[kind, event.event_id]
            if times != 1:
                problems.add(Problem(f"{kind}s {'doubled' if times else 'lost'} in the log", event.event_id))
    if logged.total() != 2 * len(sent):
        problems.add(Problem("logs of another length", f"{logged.total()} lines, {len(sent)} events"))
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7, help="of the moments")
    asked = parser.parse_args()
    with scratch_folders() as new_folder:
        home = new_folder()
        words = ("recommend", "serve", "--workers", "2", "--shadow", SHADOW)
        with served(home, words, {"TIPBENCH_SERVING_KEY": KEY}) as service:
            erasing, sent = asyncio.run(measured(home, service.address, asked.kills, asked.seed))
        problems = erasing.problems | whole(home, sent)
    show(
        "How far it was when the kill came", ("stage", "times"), [(name, str(erasing.stages[name])) for name in STAGES]
    )
    out.print(f"{erasing.half_written} files of the log were half written, or there in two versions")
    for problem in sorted(problems)[:5]:
        out.print(f"{problem.kind}: {problem.what}")
    kinds = Counter(problem.kind for problem in problems)
    found = ", ".join(f"{times} {kind}" for kind, times in kinds.items())
    out.print(
        f"{asked.kills} kills, {len(sent):,} events of others: {found or 'no trace left, nothing lost or doubled'}"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
