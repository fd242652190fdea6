"""Names to judges that run by themselves."""

import re
from collections.abc import Callable, Mapping

from tipbench.errors import InvalidInput
from tipbench.judge.judges.interface import Judge, JudgeName
from tipbench.suites.rubric import Rubric

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


def _lexical(rubric: Rubric) -> Judge:
    from tipbench.judge.judges.lexical import LexicalJudge

    return LexicalJudge(rubric)


CATALOG: Mapping[str, Callable[[Rubric], Judge]] = {"lexical": _lexical}


def check_judge(name: str) -> None:
    if name not in CATALOG:
        raise InvalidInput(f"there is no judge '{name}' that runs by itself; there is {', '.join(CATALOG)}")


def judge_named(name: str, rubric: Rubric) -> Judge:
    check_judge(name)
    return CATALOG[name](rubric)


def person(name: str) -> JudgeName:
    """Somebody who judges by hand, under a name that fits into MLflow's keys."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"judge name {name!r} can't be used; take up to 40 letters, digits, dots and dashes")
    if name in CATALOG:
        raise InvalidInput(f"'{name}' is a judge that runs by itself (--run {name}); take another name for a person")
    return JudgeName(name)
