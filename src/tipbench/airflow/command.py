"""`tipbench airflow`: sets up an Airflow for tipbench."""

import json
import shlex
from pathlib import Path

import click
from rich.console import Console

from tipbench.airflow.prerequisites import Check, check_mlflow, check_ollama
from tipbench.airflow.remote.client import AirflowApi
from tipbench.airflow.remote.records import DAG_ID
from tipbench.airflow.request import dags_folder
from tipbench.airflow.setup import Setup, expected_hosts, given_hosts, steps
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable

HELP = "Set an Apache Airflow up for runs on several machines, and check it."
_CHECK_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "dim")}
_EXAMPLE_MODEL = "qwen2.5:0.5b"
_OUT = Console(highlight=False, markup=False)
_ERR = Console(stderr=True, highlight=False, markup=False)


@click.group(
    epilog="Example:\n\n\b\n  tipbench airflow init --ollama-url http://gpu1:11434,http://gpu2:11434\n"
    "  tipbench airflow init --check"
)
def command() -> None:
    """Set an Apache Airflow up for runs on several machines, and check it.

    Airflow has an environment of its own, with tipbench in it; this command only needs to reach its API server.
    """


@command.command(
    epilog="Examples:\n\n\b\n"
    "  export TIPBENCH_AIRFLOW_USERNAME=admin TIPBENCH_AIRFLOW_PASSWORD=…\n"
    "  AIRFLOW_HOME=~/airflow tipbench airflow init\n"
    "  tipbench airflow init --dags-folder ./dags --ollama-url http://gpu1:11434,http://gpu2:11434\n"
    "  TIPBENCH_AIRFLOW_URL=https://airflow.example tipbench airflow init --check\n\n"
    "Airflow is asked at $TIPBENCH_AIRFLOW_URL, by default http://localhost:8080, as $TIPBENCH_AIRFLOW_USERNAME with "
    "$TIPBENCH_AIRFLOW_PASSWORD, or with $TIPBENCH_AIRFLOW_TOKEN."
)
@click.option(
    "--ollama-url",
    metavar="URL,URL…",
    help="Ollama hosts; each loads one model at a time."
    "  [default: those of the existing file, else http://localhost:11434]",
)
@click.option(
    "--dags-folder",
    "dags_folder_given",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where Airflow looks for DAGs.  [default: $AIRFLOW__CORE__DAGS_FOLDER, else $AIRFLOW_HOME/dags]",
)
@click.option("--check", "only_check", is_flag=True, help="Only check; change nothing.")
def init(ollama_url: str | None, dags_folder_given: Path | None, only_check: bool) -> int:
    """Put the DAG bench_collect into Airflow's folder, make a pool for each Ollama host, and check everything.

    Can be run again at any time: what is right stays as it is. Exit status: 0 when all is well, 1 when something is
    missing, 2 when refused.
    """
    settings = Settings()
    setup = Setup(dags_folder_given or dags_folder(settings), given_hosts(ollama_url), only_check, _report)
    api = AirflowApi(settings)
    try:
        missing = sum([_show(check) for check in steps(setup, api)])
    finally:
        api.close()
    missing += sum([_show(check) for check in check_mlflow(settings)])
    models = []
    for host in expected_hosts(setup) or ():
        check, found = check_ollama(host, settings)
        _show(check)
        models += found
    if missing:
        _OUT.print(f"Not ready: {missing} {'thing is' if missing == 1 else 'things are'} missing.")
        return 1
    conf = shlex.quote(json.dumps({"models": (models or [_EXAMPLE_MODEL])[0]}))
    _OUT.print(printable(f"All set, for example: airflow dags trigger {DAG_ID} --conf {conf}"), soft_wrap=True)
    return 0


def _show(check: Check) -> bool:
    """Print a check; return whether it failed."""
    mark, style = _CHECK_MARKS[check.good]
    _OUT.print(f"{mark} ", style=style, end="")
    _OUT.print(f"{check.what:<13} {printable(check.text)}", soft_wrap=True)
    return check.good is False


def _report(text: str) -> None:
    _ERR.print(text, style="dim", soft_wrap=True)
