"""What replays found, a file each in TIPBENCH_HOME/recommender/replays."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipbench.core.errors import StateRefused
from tipbench.core.paths import replays_folder
from tipbench.core.version import __version__
from tipbench.recommender.promotion.immutable_records import read_record, read_records, write_record
from tipbench.recommender.replay.verdict import Status

SCHEMA = 1


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class ReplayVerdict(_Part):
    status: Status
    reason: str


class ReplayRecord(_Part):
    """As much of it as a promotion depends on."""

    schema_version: Literal[1] = Field(alias="schema")
    id: str
    made_ms: int
    candidate: dict[str, Any]  # as a gate's record has it
    verdict: ReplayVerdict


def keep_replay(home: Path, found: Mapping[str, Any], made_ms: int) -> str:
    """Gives the record's id."""
    content = {"schema": SCHEMA, "made_ms": made_ms, "tipbench": __version__, **found}
    return write_record(replays_folder(home), content)


def read_replay(home: Path, name: str) -> ReplayRecord:
    """Raises StateDamaged for one that was edited."""
    return _replay(read_record(replays_folder(home), name))


def read_replays(home: Path) -> list[ReplayRecord]:
    """Newest first. Raises StateDamaged for one that was edited."""
    found = map(_replay, read_records(replays_folder(home)))
    return sorted(found, key=lambda replay: (replay.made_ms, replay.id), reverse=True)


def _replay(data: dict[str, Any]) -> ReplayRecord:
    try:
        return ReplayRecord.model_validate(data)
    except ValidationError as error:
        raise StateRefused(
            f"the replay {data['id']} was kept in a form that this tipbench does not know; remove it from "
            "recommender/replays in TIPBENCH_HOME, and replay again"
        ) from error
