"""What a judge that runs by itself must do."""

from typing import Any, NamedTuple, Protocol


class JudgeName(NamedTuple):
    """Who judges; a provisional judge's scores are shown as such and never count."""

    name: str
    provisional: bool = False


class Judge(Protocol):
    """Fills in a judge file."""

    identity: JudgeName

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        """The file with every score filled in; what it is given stays as it is."""
        ...
