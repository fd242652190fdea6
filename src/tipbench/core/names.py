"""Names that people give to judges and the like: they go into MLflow's keys, so few characters are allowed."""

import re

from tipbench.core.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def check_shape(name: str) -> None:
    """Raise InvalidInput for a judge's name that can't be used as a part of a key."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"judge name {name!r} can't be used; take up to 40 of a–z, A–Z, 0–9, dots and dashes, without spaces"
        )
