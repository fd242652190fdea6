"""Stored replay results, one file each in TIPBENCH_HOME/recommender/replays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tipbench.core.paths import replays_folder
from tipbench.core.version import __version__
from tipbench.recommender.promotion.immutable_records import Record, RecordFolder, RecordPart, write_record
from tipbench.recommender.replay.verdict import Status

SCHEMA = 1


class ReplayVerdict(RecordPart):
    status: Status
    reason: str


class ReplayRecord(Record):
    """The part of a stored replay that a promotion depends on."""

    candidate: dict[str, Any]  # in the same form as in a gate's record
    verdict: ReplayVerdict


def replay_records(home: Path) -> RecordFolder[ReplayRecord]:
    return RecordFolder(replays_folder(home), ReplayRecord, "replay", "replay again")


def store_replay(home: Path, found: Mapping[str, Any], made_ms: int) -> str:
    """Store a replay's result; return the record's id."""
    content = {"schema": SCHEMA, "made_ms": made_ms, "tipbench": __version__, **found}
    return write_record(replays_folder(home), content)
