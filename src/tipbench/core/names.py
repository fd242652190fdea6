"""Names of judges: they go into MLflow's keys, so few characters are allowed, and some names are taken."""

import re

from tipbench.core.errors import InvalidInput

AUTOMATIC_JUDGES = ("lexical", "command", "webhook", "model")
BY_RULE = "rule"  # stands in the place of a judge where an answer is empty
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def check_judge_name(name: str, kind: str = "") -> None:
    """Raise InvalidInput for a name that no judge can have; `kind` is the automatic judge that may bear its own."""
    if name in AUTOMATIC_JUDGES and name != kind:
        raise InvalidInput(f"'{name}' is a judge that runs by itself (--run {name}); take another name for this one")
    if name == BY_RULE:
        raise InvalidInput(f"the name '{name}' stands for answers that nobody has to judge; take another")
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"judge name {name!r} can't be used; take up to 40 of a–z, A–Z, 0–9, dots and dashes, without spaces"
        )
