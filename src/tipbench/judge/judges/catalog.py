"""Names to judges that run by themselves."""

from collections.abc import Callable, Mapping

from tipbench.errors import InvalidInput
from tipbench.judge.judges.interface import Judge
from tipbench.suites.rubric import Rubric


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
