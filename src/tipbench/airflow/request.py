"""The request of a DAG run: its conf, validated against the options."""

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
    "retry_failed": "Try cells that failed before again.",
    "fresh": "Start over: cells of this grid that are stored already no longer count.",
}
HOME = Setting("AIRFLOW_HOME", "~/airflow", "Folder of Airflow's configuration.")
DAGS_FOLDER = Setting("AIRFLOW__CORE__DAGS_FOLDER", "", "Where Airflow looks for DAGs; default: dags in its folder.")
_MAX_CHARS = 10_000  # a conf may repeat names of any length, and an XCom is stored forever


@dataclass(frozen=True)
class Request:
    options: Options
    retry_failed: bool
    fresh: bool


def read_conf(conf: Mapping[str, Any], defaults: Mapping[str, Any]) -> Request:
    """Validate a run's conf; raise Problems with everything that is wrong.

    Airflow accepts keys that no Param names; those are reported here. Its forms send every key, so a value that equals
    the option's default counts as not given and a suite's own default can apply, unless the DAG sets another default.
    """
    given = {**defaults, **conf}
    flags = {name: given.pop(name, False) for name in FLAGS}
    problems = [
        f"{name}: must be true or false (given: {shown(flag, 80)})"
        for name, flag in flags.items()
        if flag not in (True, False)
    ]
    option_defaults = {name: field.default for name, field in Options.model_fields.items()}
    changed = {
        key: value
        for key, value in given.items()
        if key not in option_defaults or (value is not None and (value != option_defaults[key] or key in defaults))
    }
    try:
        options = make_options(changed, "the conf")
    except Problems as error:
        problems = [*error.problems, *problems]
    if problems:
        raise Problems("the conf can't be used, so nothing was generated:", problems)
    return Request(options, bool(flags["retry_failed"]), bool(flags["fresh"]))


# The DAGs folder, by the same settings that Airflow's own services read.


def dags_folder(settings: Settings) -> Path:
    given = settings.value(DAGS_FOLDER) or f"{settings.value(HOME)}/dags"
    return Path(os.path.expanduser(given)).absolute()  # noqa: PTH111 - Path.expanduser raises for ~nobody


# Errors that only tasks of the DAG can have.


class CellsFailed(TipbenchError):
    """Cells of a model have no answer. They are stored as failures, and retried when the task is."""


class TaskTerminated(TipbenchError):
    """The run was cancelled, or the worker is shutting down."""


def user_message(error: Exception) -> str:
    """Return the message to show to users, limited in length; an unexpected error is described as such."""
    if not isinstance(error, TipbenchError):
        error = TipbenchError(f"it ended with an unexpected error ({type(error).__name__}: {error}); its log has more")
    text = printable(str(error))
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
