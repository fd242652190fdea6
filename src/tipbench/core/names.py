"""Names of judges: they become parts of MLflow keys, so only few characters are allowed."""

import re

from tipbench.core.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def check_judge_name(name: str) -> None:
    """Raise InvalidInput if the judge's name can't be used as part of a key."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"judge name {name!r} can't be used; use up to 40 of a–z, A–Z, 0–9, dots and dashes, without spaces"
        )
