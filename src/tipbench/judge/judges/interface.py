"""What a judge that runs by itself must do."""

import re
from typing import Any, NamedTuple, Protocol

from tipbench.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


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


def person(name: str) -> JudgeName:
    """Somebody who judges by hand, under a name that fits into MLflow's keys."""
    from tipbench.judge.judges.catalog import CATALOG

    if not _NAME.fullmatch(name):
        raise InvalidInput(f"judge name {name!r} can't be used; take up to 40 letters, digits, dots and dashes")
    if name in CATALOG:
        raise InvalidInput(f"'{name}' is a judge that runs by itself (--run {name}); take another name for a person")
    return JudgeName(name)
