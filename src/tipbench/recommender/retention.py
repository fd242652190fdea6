"""How long the lines of the decision log and the shadows' signals are kept."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pydantic_core import from_json

from tipbench.recommender.log.rewriting import remove_lines
from tipbench.recommender.log.segmented_log import read_entries, segments, wrong_kind_error


class Age(NamedTuple):
    """What there is of a log, seen from a moment."""

    expired: int  # lines from before it
    kept_from_ms: int | None  # time of the oldest line that is not


def age_of(folder: Path, before_ms: int) -> Age:
    """Read a whole log. Raises StateDamaged for a line whose time can't be told."""
    expired, kept_from_ms = 0, None
    for path in segments(folder):
        for _, entry in read_entries(path):
            try:
                at_ms = int(entry["at_ms"])
            except (KeyError, TypeError, ValueError) as error:
                raise wrong_kind_error(path, error) from error
            if at_ms < before_ms:
                expired += 1
            else:
                kept_from_ms = at_ms if kept_from_ms is None else min(at_ms, kept_from_ms)
    return Age(expired, kept_from_ms)


def remove_expired(folder: Path, before_ms: int) -> None:
    """Remove a log's lines from before a moment, while processes append others. The caller holds `exclusive_logs`.

    Resets go last: a kill in between must not leave to the next prior what a user did before one.
    """
    for resets in (False, True):
        remove_lines(folder, _older(before_ms, resets))


def _older(before_ms: int, resets: bool) -> Callable[[bytes], bool]:
    def matches(line: bytes) -> bool:
        if not line.endswith(b"\n"):  # it is being written
            return False
        entry = from_json(line)
        return int(entry["at_ms"]) < before_ms and (resets or entry.get("kind") != "reset")

    return matches
