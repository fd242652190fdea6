"""The prompt of a run that waits for scores: Airflow shows it as a subject and a Markdown body."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tipbench.core.untrusted import printable


def subject_of(exported: Mapping[str, Any]) -> str:
    return printable(f"{exported['items']} items of {exported['experiment']} wait for scores")


def question_of(exported: Mapping[str, Any], mlflow_url: str) -> str:
    """Return the prompt's body in Markdown.

    Names are chosen by whoever started the run, so they are shown as code spans that nothing in them can close; the
    command can be copied. Airflow keeps showing a task's first prompt even when the task asks again, so problems with
    an answer are only in the log.
    """
    experiment, store = shlex.quote(exported["experiment"]), shlex.quote(mlflow_url)
    apply = f"tipbench judge --experiment={experiment} --mlflow-url={store} --apply judge.json"
    return (
        f"Batch {_code_span(exported['batch'])} is for judge {_code_span(exported['judge'])}. It can be scored on the "
        f"judging page of `tipbench serve`, or as a file: fill in [judge.json from MLflow]"
        f"(<{_escape_url(exported['link'])}>) and pass it to {_code_span(apply)}, or paste it here. This run checks "
        "for the scores every five minutes; responding makes it check at once. If it prompts again after a response, "
        "this task's log says why."
    )


def _code_span(text: str) -> str:
    """Return a code span, in more backticks than any run in the text; on one line, since a blank line would end it."""
    shown = printable(text).replace("\n", " ")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    padding = " " if "`" in shown else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def _escape_url(link: str) -> str:
    return re.sub(r"[<>\s\\]", lambda found: f"%{ord(found[0]):02X}", printable(link))
