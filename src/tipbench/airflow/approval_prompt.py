"""What a run asks of people while it waits for scores: shown by Airflow as a subject, and a body in Markdown."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tipbench.core.untrusted import printable


def subject_of(exported: Mapping[str, Any]) -> str:
    return printable(f"{exported['items']} items of {exported['experiment']} wait for scores")


def question_of(exported: Mapping[str, Any], mlflow_url: str) -> str:
    """Names come from whoever began the run: they stand as code, which nothing in them can end, and can be pasted.

    Airflow keeps the first question of a task, also when it asks again: what an answer lacked is in the log alone.
    """
    experiment, store = shlex.quote(exported["experiment"]), shlex.quote(mlflow_url)
    apply = f"tipbench judge --experiment={experiment} --mlflow-url={store} --apply judge.json"
    return (
        f"Batch {_code(exported['batch'])} is for judge {_code(exported['judge'])}. It can be scored on the "
        f"judging page of `tipbench serve`, or as a file: [judge.json in MLflow](<{_address(exported['link'])}>), "
        f"filled in and given to {_code(apply)}, or pasted here. "
        "This run looks for the scores every five minutes by itself; an answer makes it look at once. Where it asks "
        "again after an answer, this task's log says why."
    )


def _code(text: str) -> str:
    """Between more backticks than the text has anywhere in a row; on one line, because a blank line would end it."""
    shown = printable(text).replace("\n", " ")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    padding = " " if "`" in shown else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def _address(link: str) -> str:
    return re.sub(r"[<>\s\\]", lambda found: f"%{ord(found[0]):02X}", printable(link))
