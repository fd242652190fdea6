"""The tables of the PostgreSQL store, and the SQL statements for them.

Several statements go in one message, so that a request takes two round trips: one to lock and read, one to write and
commit. Each statement sees what was committed before it began, and so what the last holder of the lock has written.
Events are numbered without gaps, so each new one evicts exactly one old one, which is found by its number; a range
query would read all deleted ones too. No two indexes on the events share a prefix, so the planner can't pick the wrong
one. States are json, not jsonb, which preserves the text, so every number is read back as it was written, even negative
zero.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from pydantic_core import from_json, to_json

from tipbench.core.errors import StateDamaged
from tipbench.recommender.records import Source
from tipbench.recommender.store.interface import Event, Key, Marker, UserState

SCHEMA = 1
REMEMBERED = 1000  # events per user and policy; older ones are deleted
LOCK_CLASS = (
    0x71B8  # first key of our advisory locks; the second is 0 for creating tables, or the oid of tipbench_store
)

FIND_TABLES = """
SELECT to_regclass('tipbench_priors') IS NOT NULL
    AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('tipbench_events') AND attname = 'category'),
    current_setting('server_encoding')
"""
CREATE_TABLES = f"""
BEGIN;
SELECT pg_advisory_xact_lock({LOCK_CLASS}, 0);
CREATE TABLE IF NOT EXISTS tipbench_store (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    schema_version integer NOT NULL,
    mark json
);
INSERT INTO tipbench_store (schema_version) VALUES ({SCHEMA}) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS tipbench_states (
    id bigint GENERATED ALWAYS AS IDENTITY,
    user_id text COLLATE "C",
    policy text COLLATE "C",
    feature_version text,
    state json,
    n bigint GENERATED ALWAYS AS ((state ->> 'n')::bigint) STORED,
    reward_sum double precision GENERATED ALWAYS AS ((state ->> 'reward_sum')::double precision) STORED,
    duplicates bigint NOT NULL DEFAULT 0,
    late bigint NOT NULL DEFAULT 0,
    updated_ms bigint,
    PRIMARY KEY (user_id, policy)
) WITH (fillfactor = 70);
CREATE TABLE IF NOT EXISTS tipbench_events (
    user_id text COLLATE "C",
    policy text COLLATE "C",
    event_id text COLLATE "C",
    state_id bigint NOT NULL,
    seq bigint NOT NULL,
    scored_ms bigint NOT NULL,
    request text NOT NULL,
    chosen text NOT NULL,
    score double precision NOT NULL,
    propensity double precision NOT NULL,
    epsilon double precision NOT NULL,
    n bigint NOT NULL,
    features double precision[],
    source json,
    reward double precision,
    late boolean NOT NULL,
    PRIMARY KEY (user_id, policy, event_id)
) WITH (fillfactor = 80);
ALTER TABLE tipbench_events ADD COLUMN IF NOT EXISTS category text;
CREATE UNIQUE INDEX IF NOT EXISTS tipbench_events_by_age ON tipbench_events (state_id, seq);
CREATE TABLE IF NOT EXISTS tipbench_promotions (
    number bigint PRIMARY KEY,
    act json NOT NULL
);
CREATE TABLE IF NOT EXISTS tipbench_priors (
    digest text COLLATE "C" PRIMARY KEY,
    content json NOT NULL
);
COMMIT
"""
SET_UP = """
SELECT set_config('lock_timeout', '4s', false), set_config('idle_in_transaction_session_timeout', '10s', false),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
"""
LOCK_SHARED = f"SELECT pg_try_advisory_lock_shared({LOCK_CLASS}, 'tipbench_store'::regclass::oid::integer)"
LOCK_EXCLUSIVE = f"SELECT pg_try_advisory_lock({LOCK_CLASS}, 'tipbench_store'::regclass::oid::integer)"
SELECT_STORE = "SELECT schema_version, mark FROM tipbench_store"
SET_MARKER = "UPDATE tipbench_store SET mark = %s::json"

_OF_KEY = "user_id = %s AND policy = %s"
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_STATE_COLUMNS = f"feature_version, state::text, duplicates, late, updated_ms FROM tipbench_states WHERE {_OF_KEY}"
SELECT_STATE = f"SELECT {_STATE_COLUMNS}"
SELECT_STATE_FOR_UPDATE = f"SELECT id, {_STATE_COLUMNS} FOR UPDATE"
INSERT_STATE = "INSERT INTO tipbench_states (user_id, policy) VALUES (%s, %s) ON CONFLICT DO NOTHING"
UPDATE_STATE = (
    "UPDATE tipbench_states SET feature_version = %s, state = %s::json, duplicates = %s, late = %s, updated_ms = %s "
    f"WHERE {_OF_KEY} RETURNING id"
)
_COLUMNS = tuple("event_id" if field.name == "id" else field.name for field in fields(Event))
_FLOATS = ("score", "propensity", "epsilon", "reward")
_TYPES = {**dict.fromkeys(_FLOATS, "float8"), "features": "float8[]", "source": "json"}
_VALUES = ", ".join(f"%s::{_TYPES[name]}" if name in _TYPES else "%s" for name in _COLUMNS)
_SELECT_EVENTS = f"SELECT {', '.join(_COLUMNS)} FROM tipbench_events WHERE {_OF_KEY}"
SELECT_EVENT = f"{_SELECT_EVENTS} AND event_id = %s"
SELECT_EVENTS_OLDEST_FIRST = f"{_SELECT_EVENTS} ORDER BY seq"
COUNT_WAITING = f"SELECT count(*) FROM tipbench_events WHERE {_OF_KEY} AND reward IS NULL AND NOT late"
INSERT_EVENT = f"""
WITH last AS (SELECT coalesce(max(seq), 0) AS seq FROM tipbench_events WHERE state_id = %s),
    forgotten AS (DELETE FROM tipbench_events WHERE state_id = %s AND seq = (SELECT seq FROM last) - {REMEMBERED - 1})
INSERT INTO tipbench_events (user_id, policy, state_id, seq, {", ".join(_COLUMNS)})
SELECT %s, %s, %s, last.seq + 1, {_VALUES} FROM last
"""
UPDATE_EVENT = f"UPDATE tipbench_events SET ({', '.join(_COLUMNS)}) = ROW({_VALUES}) WHERE {_OF_KEY} AND event_id = %s"
COPY_EVENTS = f"COPY tipbench_events (user_id, policy, state_id, seq, {', '.join(_COLUMNS)}) FROM STDIN"
DELETE_EVENTS = f"DELETE FROM tipbench_events WHERE {_OF_KEY}"
_OF_USER = "user_id = %s AND policy = ANY(%s)"
LOCK_USER_STATES = f"SELECT id, policy FROM tipbench_states WHERE {_OF_USER} ORDER BY policy FOR UPDATE"
CLEAR_EVENTS = "DELETE FROM tipbench_events WHERE state_id = ANY(%s)"
CLEAR_STATES = "DELETE FROM tipbench_states WHERE user_id = %s AND id = ANY(%s)"
SELECT_KEYS = "SELECT user_id, policy FROM tipbench_states WHERE (user_id, policy) > (%s, %s) ORDER BY 1, 2 LIMIT 1000"

SELECT_POLICIES = """
SELECT policy FROM tipbench_states WHERE user_id = %s UNION SELECT policy FROM tipbench_events WHERE user_id = %s
"""
USER_TABLES = ("tipbench_states", "tipbench_events", "pg_statistic")  # the last one has samples of columns
REWRITE = "VACUUM (FULL, ANALYZE, VERBOSE) "
VACUUM = "VACUUM (INDEX_CLEANUP ON, ANALYZE) "
LIMIT_TIME = "SELECT set_config('statement_timeout', '2s', false)"  # less than requests wait for a lock
DONT_LIMIT_TIME = "RESET statement_timeout"


def state_of_row(row: Sequence[Any], key: Key) -> UserState | None:
    """Return the state in a row; None if the row was only created to be locked.

    Raises StateDamaged if it is malformed.
    """
    version, text, *counts = row
    if text is None:
        return None
    state = from_json(text)
    if version is None or not isinstance(state, dict):
        raise StateDamaged(f"the state of {key.user_id} with {key.policy} was not written by tipbench; reset the user")
    return UserState(version, state, *counts)


def state_values(user_state: UserState | None) -> list[Any]:
    if user_state is None:
        return [None, None, 0, 0, None]
    state = to_json(user_state.state).decode()
    return [user_state.feature_version, state, user_state.duplicates, user_state.late, user_state.updated_ms]


def event_of(row: tuple[Any, ...]) -> Event:
    values: dict[str, Any] = dict(zip((field.name for field in fields(Event)), row, strict=True))
    features, source = values["features"], values["source"]
    values["features"] = None if features is None else tuple(features)
    try:
        values["source"] = None if source is None else Source(**source)
    except (TypeError, ValueError) as error:
        raise StateDamaged(f"the event {values['id']!r} has a source that tipbench did not write") from error
    return Event(**values)


def event_values(event: Event) -> list[Any]:
    values = {**vars(event)}
    values["features"] = None if event.features is None else list(event.features)
    values["source"] = None if event.source is None else event.source.model_dump_json()
    return list(values.values())


def marker_from_data(data: Any) -> Marker | None:
    return None if data is None else Marker(**data)


def marker_json(marker: Marker | None) -> str | None:
    return None if marker is None else to_json(marker._asdict()).decode()
