"""Checks of what workers need besides Airflow, from this machine: the MLflow server and the Ollama hosts."""

from collections.abc import Iterator
from dataclasses import dataclass

from tipbench.airflow.planning import shared_address
from tipbench.bench.bench import Bench
from tipbench.bench.context import Context
from tipbench.bench.engines.catalog import DEFAULT_ENGINE, open_engines
from tipbench.bench.options import make_options
from tipbench.core.errors import TipbenchError
from tipbench.core.settings import Settings
from tipbench.core.text import counted


@dataclass(frozen=True)
class Check:
    """The result of a check, as `tipbench airflow init` shows it."""

    good: bool | None  # None: for information only
    what: str
    text: str  # says what to do next if the check failed


def check_mlflow(settings: Settings) -> Iterator[Check]:
    try:
        with Bench(context=Context(settings), mlflow_url=shared_address(None, settings)) as bench:
            address, count = bench.store.address, len(bench.store.experiments(""))
    except TipbenchError as error:
        yield Check(False, "mlflow", str(error))
        return
    yield Check(True, "mlflow", f"{address}: {counted(count, 'experiment')}")
    yield Check(
        None,
        "",
        f"each worker needs MLFLOW_TRACKING_URI={address} in its environment, or each run mlflow_url in its conf",
    )


def models_on(url: str, settings: Settings) -> list[str]:
    with open_engines(make_options({"ollama_url": url}), settings) as engines:
        return [model.name for model in engines.named(DEFAULT_ENGINE).models()]


def check_ollama(url: str, settings: Settings) -> tuple[Check, list[str]]:
    """Return the check and the host's models. It never fails: workers may reach hosts that this machine can't."""
    try:
        models = models_on(url, settings)
    except TipbenchError as error:
        return Check(None, "ollama", f"{error}. Workers may be able to reach it nevertheless"), []
    return Check(True if models else None, "ollama", f"{url}: {counted(len(models), 'model')}"), models
