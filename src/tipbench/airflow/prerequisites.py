"""What workers need besides Airflow, seen from here: the MLflow server and the Ollama hosts."""

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

# What a check found, as `tipbench airflow init` shows it.


@dataclass(frozen=True)
class Check:
    good: bool | None  # None: worth knowing, and in nobody's way
    what: str
    text: str  # where it is not good, with what to do next


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
    """With the models that are there. Never a fault: workers may reach hosts that this machine doesn't."""
    try:
        models = models_on(url, settings)
    except TipbenchError as error:
        return Check(None, "ollama", f"{error}. Workers may reach it all the same"), []
    return Check(True if models else None, "ollama", f"{url}: {counted(len(models), 'model')}"), models
