"""What Airflow knows of the DAG. Its dag-processor reads the file some time after it was written."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from tipbench.airflow.dag_file import FILE
from tipbench.airflow.prerequisites import Check
from tipbench.airflow.remote.client import AirflowApi
from tipbench.airflow.remote.records import COLLECT, DAG_ID
from tipbench.core.errors import NotFound
from tipbench.core.untrusted import printable

TIMEOUT_S = 60.0
_POLL_INTERVAL_S = 2.0


@dataclass(frozen=True)
class KnownDag:
    """The DAG as Airflow's API describes it."""

    dag: dict[str, Any] | None
    pools: frozenset[str]  # of the Ollama hosts that its tasks collect on
    error: str  # why Airflow could not read the file
    error_at: str

    def is_for(self, pools: Collection[str] | None) -> bool:
        """Return whether Airflow has read a file with exactly these pools; None accepts any."""
        is_loaded = self.dag is not None and not self.dag.get("is_stale") and not self.error
        return is_loaded and (pools is None or self.pools == frozenset(pools))


def known_dag(api: AirflowApi) -> KnownDag:
    try:
        dag = api.get(f"/dags/{DAG_ID}")
        tasks = _rows(api.get(f"/dags/{DAG_ID}/tasks"), "tasks")
    except NotFound:
        dag, tasks = None, []
    errors = _rows(api.get("/importErrors", filename_pattern=FILE, limit=100), "import_errors")
    own_errors = [one for one in errors if str(one.get("filename", "")).rsplit("/", 1)[-1] == FILE]
    pools = frozenset(str(one.get("pool")) for one in tasks if str(one.get("task_id")).startswith(COLLECT))
    last = (
        (str(own_errors[0].get("stack_trace", "")).strip() or "it does not say why").splitlines()[-1]
        if own_errors
        else ""
    )
    return KnownDag(dag, pools, last, str(own_errors[0].get("timestamp", "")) if own_errors else "")


def wait_until_known(
    api: AirflowApi,
    pools: Collection[str] | None,
    is_new: bool,
    report: Callable[[str], None],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> KnownDag:
    """Wait until Airflow has read the file or failed to, at most TIMEOUT_S; return what it knows then.

    If the file is new, an import error from before it does not end the wait.
    """
    known = known_dag(api)
    old_error = known.error_at if is_new else ""
    deadline = clock() + TIMEOUT_S
    has_reported = False
    while not known.is_for(pools) and known.error_at in ("", old_error) and clock() < deadline:
        if not has_reported:
            report(f"Waiting for Airflow to read {FILE}, at most {TIMEOUT_S:g} s …")
            has_reported = True
        sleep(_POLL_INTERVAL_S)
        known = known_dag(api)
    return known


def check_dag(known: KnownDag, pools: Collection[str] | None) -> Iterator[Check]:
    again = "then: tipbench airflow init --check"
    if known.error:
        yield Check(
            False,
            "dag",
            f"Airflow can't read {FILE}: {printable(known.error, 300)}; every Python that Airflow runs with needs "
            f"this version of tipbench; {again}",
        )
    elif known.dag is None or known.dag.get("is_stale"):
        yield Check(
            False,
            "dag",
            f"Airflow has not found {FILE}; 'tipbench airflow init' writes it, and the folder must be Airflow's DAGs "
            "folder. By default, Airflow looks for new files every 5 minutes, and at once with 'airflow dags "
            f"reserialize'; {again}",
        )
    elif pools is not None and known.pools != frozenset(pools):
        yield Check(
            False,
            "dag",
            f"Airflow's {DAG_ID} is for {_names(known.pools)}, and should be for {_names(pools)}: it has not read "
            f"{FILE} anew, or reads another ({printable(str(known.dag.get('fileloc')), 300)}); write it with 'tipbench "
            "airflow init' and these hosts, or look again with --check",
        )
    else:
        yield Check(True, "dag", f"{DAG_ID}, for {_names(known.pools)}")
    if known.dag and known.dag.get("is_paused"):
        yield Check(False, "dag", f"{DAG_ID} is paused, so its runs stay queued: airflow dags unpause {DAG_ID}")


def _rows(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    rows = answer.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _names(pools: Collection[str]) -> str:
    return printable(", ".join(sorted(pools)), 500) or "no Ollama host"
