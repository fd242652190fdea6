"""The interface of an automatic judge."""

from typing import Any, NamedTuple, Protocol


class JudgeName(NamedTuple):
    """A judge's identity; scores of a provisional judge are shown as such and never count."""

    name: str
    provisional: bool = False


class Judge(Protocol):
    """Fills in a judge file."""

    identity: JudgeName

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        """Return a copy of the file with every score filled in; the argument is not modified."""
        ...
