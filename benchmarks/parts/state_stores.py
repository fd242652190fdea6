"""The stores of users' states for measurements that kill what serves from them, and that cut the power.

A power cut may take what was not synced. Files are damaged accordingly, and the journals have to bring them back; a
PostgreSQL crashes and starts again, and has to recover from its log.
"""

import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.integration.postgres_server import PostgresServer
from tests.integration.recommender.databases import Where, connection_url

from tipbench.core.errors import TipbenchError
from tipbench.recommender.store.interface import Movable
from tipbench.recommender.store.journal import left_segments

KINDS = ("files", "postgresql")
_LONG_S = 30.0


class StateStore(Protocol):
    @property
    def where(self) -> Where: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings of a service that uses it."""
        ...

    def open_alone(self) -> Movable:
        """Open it when nobody else has it, not even a process that was just killed."""
        ...

    def note(self) -> None:
        """Note what may come back after a power cut."""
        ...

    def cut_power(self, drawn: random.Random) -> int:
        """Lose what was not synced; return the number of states that this may have hit."""
        ...


@contextmanager
def state_store(kind: str, home: Path) -> Iterator[StateStore]:
    """An empty store of this kind; `home` is that of the service."""
    if kind == "files":
        yield _Files(home / "recommender" / "state")
    else:
        with PostgresServer.start(durable=True) as server:
            yield _Database(server)


class _Files:
    environment: Mapping[str, str] = {}

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.where = Where("files", str(folder))
        self._before: dict[Path, bytes] = {}

    def open_alone(self) -> Movable:
        return self.where.open(durable=False)

    def note(self) -> None:
        self._before = {path: path.read_bytes() for path in self._folder.glob("*.json")}

    def cut_power(self, drawn: random.Random) -> int:
        """Damage all files that are changed in journals, as they were not synced yet."""
        with left_segments(self._folder / ".journal") as left:
            changed = {(record["user_id"], record["policy"]) for segment in left for record in segment.records()}
        for user_id, policy in changed:
            path = self._folder / f"{user_id}_{policy.replace('/', '_')}.json"
            content = path.read_bytes() if path.exists() else b""  # the kill came before the first file was there
            half, before = len(content) // 2, self._before.get(path)
            mixed = before and before[:half] + content[half:]
            losses = [None, b"", content[:half], bytes(len(content)), before, mixed]
            losses += [spare.read_bytes() for spare in sorted(self._folder.glob(".spare-*"))[:2]]  # another user's
            lost = drawn.choice(losses)
            path.unlink(missing_ok=True) if lost is None else path.write_bytes(lost)
        return len(changed)


class _Database:
    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.where = Where("postgresql", connection_url(server))
        self.environment = {"TIPBENCH_STATE": "postgresql", "TIPBENCH_POSTGRESQL_URL": self.where.place}

    def open_alone(self) -> Movable:
        """A connection whose process was killed lives until PostgreSQL notices it, and may still commit."""
        deadline = time.monotonic() + _LONG_S
        while True:
            try:
                return self.where.open(exclusive=True)
            except TipbenchError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def note(self) -> None:
        """Nothing: what comes back is PostgreSQL's to decide."""

    def cut_power(self, drawn: random.Random) -> int:  # noqa: ARG002
        self._server.end(signal.SIGQUIT)
        self._server.start_again()
        store = self.open_alone()
        states = len(list(store.keys()))
        store.close()
        return states
