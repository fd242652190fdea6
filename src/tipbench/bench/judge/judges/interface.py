"""The interface of an automatic judge."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable


class JudgeName(NamedTuple):
    """A judge's identity; scores of a provisional judge are shown as such and never count."""

    name: str
    provisional: bool = False
    kind: str = ""  # person, or the automatic judge's name in the catalog; "": a program's own


class Judge(Protocol):
    """Fills in a judge file."""

    identity: JudgeName

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the file with every score filled in; the argument is not modified."""
        ...


Scored = Callable[[int, int, float], None]  # called with the items scored, of how many, and the cost so far in USD


def not_reported(_done: int, _of: int, _cost_usd: float) -> None:
    """Report progress to nobody."""


@runtime_checkable
class ResumableJudge(Judge, Protocol):
    """A judge that stores what it has scored, so that an interrupted batch is given to it again."""

    usage: Mapping[str, float]  # metrics of what the last batch took, such as its cost
