"""What a run of the DAG is asked to do: its conf, held against the configuration table."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tipbench.bench.options import Options, make_options
from tipbench.core.errors import Problems, TipbenchError
from tipbench.core.settings import Setting, Settings
from tipbench.core.untrusted import printable, shown

FLAGS = {
    "retry_failed": "Try the cells again that failed before.",
    "fresh": "Start over: what is stored of this grid is set aside.",
}
HOME = Setting("AIRFLOW_HOME", "~/airflow", "Airflow's folder.")
DAGS_FOLDER = Setting("AIRFLOW__CORE__DAGS_FOLDER", "", "Where Airflow looks for DAGs; default: dags in its folder.")
_LONGEST = 10_000  # characters: a conf may repeat names of any length, and an XCom is kept for good


@dataclass(frozen=True)
class Request:
    options: Options
    retry_failed: bool
    fresh: bool


def read_conf(conf: Mapping[str, Any], defaults: Mapping[str, Any]) -> Request:
    """A key that says what the table says anyway counts as not given, so that a suite's own defaults hold; unless the
    DAG has another default for it.

    Airflow takes keys that no Param names, and its forms send every key: both end here.
    """
    given = {**defaults, **conf}
    flags = {name: given.pop(name, False) for name in FLAGS}
    wrong = [
        f"{name}: must be true or false (given: {shown(flag, 80)})"
        for name, flag in flags.items()
        if flag not in (True, False)
    ]
    usual = {name: field.default for name, field in Options.model_fields.items()}
    asked = {
        key: value
        for key, value in given.items()
        if key not in usual or (value is not None and (value != usual[key] or key in defaults))
    }
    try:
        options = make_options(asked, "the conf")
    except Problems as error:
        wrong = [*error.problems, *wrong]
    if wrong:
        raise Problems("the conf can't be used, so nothing was generated:", wrong)
    return Request(options, bool(flags["retry_failed"]), bool(flags["fresh"]))


# Airflow's own settings that say where its DAGs folder is; services and `tipbench airflow init` read the same.


def dags_folder(settings: Settings) -> Path:
    given = settings.value(DAGS_FOLDER) or f"{settings.value(HOME)}/dags"
    return Path(os.path.expanduser(given)).absolute()  # noqa: PTH111 - the other one raises for ~nobody


# What can go wrong with a task that nothing else in tipbench has a word for.


class CellsFailed(TipbenchError):
    """Cells of a model have no answer; they are stored as failures, and tried again with the task."""


class EndedFromOutside(TipbenchError):
    """Somebody cancelled the run, or the worker is going down."""


def words_of(error: Exception) -> str:
    """What the user reads; for an error that nobody foresaw, that it is one."""
    if not isinstance(error, TipbenchError):
        error = TipbenchError(
            f"it ended with an error that nobody foresaw ({type(error).__name__}: {error}); its log has more"
        )
    text = printable(str(error))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
