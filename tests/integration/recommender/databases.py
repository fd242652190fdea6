"""Empty stores of both kinds, as many as a test wants; those in PostgreSQL have a schema of their own each."""

import itertools
from pathlib import Path
from typing import NamedTuple

import psycopg

from tests.integration.postgres_server import DATABASE, USER, PostgresServer
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Event, Key, Movable, UserState
from tipbench.recommender.store.postgresql import PostgresStore

_numbers = itertools.count(1)


class Where(NamedTuple):
    """A store that any process can open."""

    kind: str
    place: str

    def open(self, exclusive: bool = False, durable: bool = True) -> Movable:
        if self.kind == "files":
            return FileStore(Path(self.place), durable, exclusive)
        return PostgresStore(self.place, exclusive)


def connection_url(server: PostgresServer) -> str:
    return f"postgresql://{USER}@/{DATABASE}?host={server.folder}"


def new_schema(server: PostgresServer) -> str:
    """The URL of tables that nobody else has."""
    url, name = connection_url(server), f"s{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{url}&options=-c%20search_path%3D{name}"


def content(store: Movable) -> dict[Key, tuple[UserState | None, list[Event]]]:
    """All that is in it."""
    return {key: (store.read_state(key), store.events(key)) for key in list(store.keys())}
