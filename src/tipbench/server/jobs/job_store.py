"""Jobs in a small SQLite database, where a restarted server finds them again."""

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tipbench.core.sqlite import Database
from tipbench.core.untrusted import json_text, printable
from tipbench.server.jobs.interface import ENDED, Job, JobState, UnknownJob
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.progress import Progress

MAX_ENDED_JOBS = 200
_TABLE = """
CREATE TABLE job (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    config TEXT NOT NULL,
    retry_failed INTEGER NOT NULL,
    fresh INTEGER NOT NULL,
    needs TEXT NOT NULL,
    created_ms INTEGER NOT NULL UNIQUE,
    started_ms INTEGER,
    ended_ms INTEGER,
    pid INTEGER,
    cancelling INTEGER NOT NULL DEFAULT 0,
    stopped_ms INTEGER,
    killed INTEGER NOT NULL DEFAULT 0,
    exit_status INTEGER,
    message TEXT NOT NULL DEFAULT ''
)
"""
_ENDED = ", ".join(f"'{state}'" for state in sorted(ENDED))


@dataclass(frozen=True)
class StoredJob:
    """A job, with what only its runner needs to know."""

    job: Job
    retry_failed: bool
    fresh: bool
    needs: tuple[str, ...]
    pid: int | None  # of its supervisor
    stopped_ms: int | None  # when its processes were sent SIGTERM
    killed: bool  # they did not end in time and were killed


class JobStore:
    """Reads and writes jobs. Thread-safe."""

    def __init__(self, path: Path, noun: str = "job") -> None:
        self._noun = noun
        self._database = Database(path, _TABLE, version=1)
        with self._database.connection() as database:
            database.row_factory = sqlite3.Row

    def close(self) -> None:
        self._database.close()

    def add(self, job: Job, retry_failed: bool, fresh: bool, needs: tuple[str, ...]) -> None:
        """Add a job. Its creation time is increased if necessary to be unique, because it defines the order of jobs."""
        self._execute(
            "INSERT INTO job (id, state, config, retry_failed, fresh, needs, created_ms) "
            "SELECT ?, ?, ?, ?, ?, ?, max(?, coalesce(max(created_ms), 0) + 1) FROM job",
            *(job.id, job.state, json_text(dict(job.config), indent=None), retry_failed, fresh),
            *(json.dumps(needs), job.created_ms),
        )

    def update(self, job_id: str, state: JobState, /, **columns: Any) -> bool:
        """Set columns if the job is still in this state; return whether it was."""
        names = ", ".join(f"{name} = ?" for name in columns)
        return self._execute(f"UPDATE job SET {names} WHERE id = ? AND state = ?", *columns.values(), job_id, state) > 0

    def get(self, job_id: str) -> StoredJob:
        found = self._read("WHERE id = ?", job_id)
        if not found:
            raise UnknownJob(
                f"there is no {self._noun} '{printable(job_id, 60)}'; only the last {MAX_ENDED_JOBS} that have ended "
                "are stored"
            )
        return found[0]

    def newest(self, limit: int, before_ms: int | None) -> list[StoredJob]:
        return self._read(
            "WHERE created_ms < ? ORDER BY created_ms DESC LIMIT ?", 2**62 if before_ms is None else before_ms, limit
        )

    def live(self) -> list[StoredJob]:
        """Return the jobs that have not ended: running ones first, then the queue in order."""
        return self._read(f"WHERE state NOT IN ({_ENDED}) ORDER BY state = 'queued', created_ms")

    def outdated(self) -> list[StoredJob]:
        """Return the ended jobs beyond the newest MAX_ENDED_JOBS."""
        return self._read(f"WHERE state IN ({_ENDED}) ORDER BY created_ms DESC LIMIT -1 OFFSET {MAX_ENDED_JOBS}")

    def ids(self) -> set[str]:
        return {stored.job.id for stored in self._read("")}

    def remove(self, job_id: str) -> None:
        self._execute("DELETE FROM job WHERE id = ?", job_id)

    def _read(self, where: str, *values: Any) -> list[StoredJob]:
        statement = f"SELECT * FROM job {where}"
        with self._database.connection() as database, closing(database.execute(statement, values)) as rows:
            return [_stored_job(row) for row in rows]

    def _execute(self, statement: str, *values: Any) -> int:
        with self._database.connection() as database, closing(database.execute(statement, values)) as cursor:
            return cursor.rowcount


def _stored_job(row: sqlite3.Row) -> StoredJob:
    job = Job(
        id=row["id"],
        state=row["state"],
        config=json.loads(row["config"]),
        created_ms=row["created_ms"],
        started_ms=row["started_ms"],
        ended_ms=row["ended_ms"],
        exit_status=row["exit_status"],
        message=row["message"],
        cancelling=bool(row["cancelling"]) and row["state"] == "running",
    )
    return StoredJob(
        job=job,
        retry_failed=bool(row["retry_failed"]),
        fresh=bool(row["fresh"]),
        needs=tuple(json.loads(row["needs"])),
        pid=row["pid"],
        stopped_ms=row["stopped_ms"],
        killed=bool(row["killed"]),
    )


class JobKind(Protocol):
    """How jobs of one kind are run, named and cleaned up after."""

    @property
    def unfinished_note(self) -> str:
        """Return the part of a job's message that says what remains of a job that did not finish."""
        ...

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        """Return the command line."""
        ...

    def name(self, job: Job) -> str:
        """Return the name by which the messages of waiting jobs refer to this one."""
        ...

    def clean_up(self, stored: StoredJob, progress: Progress | None) -> str:
        """Clean up after a job, however it ended; return text to append to its message, empty if nothing is left."""
        ...
