"""The DAG `bench_collect`: plan → collect → export_for_judge → judge → wait_for_judge → compare.

A file in Airflow's DAGs folder brings it in: `from tipbench.airflow.dag import dag`, or with hosts and defaults of
one's own, `dag = bench_collect("http://gpu1:11434", "http://gpu2:11434", models="qwen2.5:0.5b", schedule="@weekly")`.
Everything but the configuration table is imported inside the tasks: Airflow reads this file every few seconds.
"""

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from tipbench.airflow.hosts import DEFAULT_HOST, collect_task, label_of, pool_name, slug
from tipbench.airflow.params import table_params
from tipbench.airflow.remote.records import COMPARE, DAG_ID, EXPORT, JUDGE, PLAN, PLANNED, PROGRESS, WAIT
from tipbench.airflow.task import graceful_termination, pull_xcom, read_plan, report_errors, say, xcom_pusher
from tipbench.airflow.waiting import FORM, WaitForJudge

_BEFORE_COLLECTING = 100  # otherwise judging would wait until no run has a model left to collect
_RACE_RETRIES = 5  # Airflow may fail a task that is answered within seconds of its prompt; a retry prompts again
_MODEL = (
    "{{ task.op_kwargs['job']['label'] }}"  # rendered before the task starts, so that its name is shown while it runs
)


def bench_collect(
    *ollama_urls: str, schedule: str | None = None, retries: int = 2, retry_delay_s: float = 60, **defaults: Any
) -> DAG:
    """Return the DAG for these Ollama hosts; `defaults` are options for runs whose conf does not set them."""
    hosts = [url.rstrip("/") for url in ollama_urls] or [DEFAULT_HOST]
    if len({pool_name(url) for url in hosts}) < len(hosts):
        raise ValueError(f"two of these Ollama hosts would share a pool: {', '.join(hosts)}")
    given = {"ollama_url": ",".join(hosts), **defaults}
    delay = timedelta(seconds=retry_delay_s)
    with DAG(
        DAG_ID,
        description="Which model with which prompt writes the best texts: collect, judge, compare.",
        doc_md=__doc__,
        schedule=schedule,
        catchup=False,
        is_paused_upon_creation=False,
        params=table_params(given),
        default_args={"retries": retries, "retry_delay": delay},
        tags=["tipbench"],
    ) as dag:
        planned = _plan(hosts, given)
        shares = [planned, *(_plan_share(url) for url in hosts[1:])]
        lanes = [_lane(index, url, share) for index, (url, share) in enumerate(zip(hosts, shares, strict=True))]
        exported = _export_for_judge()
        waited = WaitForJudge(task_id=WAIT, params=FORM, trigger_rule="none_failed", retries=_RACE_RETRIES)
        compared = _compare()
        complete = EmptyOperator(task_id="complete", trigger_rule="none_failed")  # does not run if a model has failed
        planned >> shares[1:]
        lanes >> exported >> _judge(pool_name(hosts[0])) >> waited >> compared >> complete
        lanes >> complete
    return dag


def _plan(hosts: list[str], defaults: dict[str, Any]) -> Any:
    @task(task_id=PLAN)
    def plan() -> list[dict[str, str]]:
        """Checks the conf and the models, and gives each model to a host; returns the first host's share."""
        with report_errors():
            from tipbench.airflow.planning import plan_run
            from tipbench.airflow.request import read_conf
            from tipbench.core.settings import Settings

            run = get_current_context()["dag_run"]
            request = read_conf(run.conf or {}, defaults)
            asked_ms = round(run.run_after.timestamp() * 1000)
            planned = plan_run(request, hosts, Settings(), asked_ms, say)
            xcom_pusher(PLANNED)(planned)
            return _share(planned, collect_task(0, hosts[0]))

    return plan()


def _plan_share(url: str) -> Any:
    @task(task_id=f"{PLAN}_{slug(url)}")
    def plan_share() -> list[dict[str, str]]:
        """A further host's share."""
        return _share(read_plan(), collect_task(1, url))

    return plan_share()


def _share(planned: Any, task_id: str) -> list[dict[str, str]]:
    return [
        {"model": one["model"], "ollama_url": one["ollama_url"], "label": label_of(one["model"])}
        for one in planned["models"]
        if one["task_id"] == task_id
    ]


def _lane(index: int, url: str, share: Any) -> Any:
    @task(task_id=collect_task(index, url), pool=pool_name(url), map_index_template=_MODEL, multiple_outputs=False)
    def collect(job: dict[str, str]) -> dict[str, Any]:
        """One model's cells. In the host's pool of one slot, so that no other model is loaded there meanwhile."""
        planned = read_plan()
        with report_errors(), graceful_termination():
            from tipbench.airflow.collecting import collect_share
            from tipbench.core.settings import Settings

            is_retry = get_current_context()["ti"].try_number > 1
            return collect_share(planned, job, Settings(), is_retry, xcom_pusher(PROGRESS), say)

    return collect.expand(job=share)


def _export_for_judge() -> Any:
    @task(task_id=EXPORT, trigger_rule="all_done", multiple_outputs=False)
    def export_for_judge() -> dict[str, Any]:
        """Puts what waits into a batch in MLflow; returns where. What models that failed have stored is judged, too."""
        planned = read_plan()
        with report_errors():
            from tipbench.airflow.judging import export
            from tipbench.core.settings import Settings

            return export(planned, Settings(), say)

    return export_for_judge()


def _judge(pool: str) -> Any:
    @task(task_id=JUDGE, pool=pool, priority_weight=_BEFORE_COLLECTING, weight_rule="absolute", multiple_outputs=False)
    def judge() -> dict[str, Any]:
        """The configured judge; skipped without one. In the first host's pool, because a judge may be a model there."""
        planned, exported = read_plan(), pull_xcom(EXPORT)
        if not planned["options"]["judge"] or not exported["batch"]:
            raise AirflowSkipException("no judge is configured, or nothing waits for it")
        with report_errors(), graceful_termination():
            from tipbench.airflow.judging import run_judge
            from tipbench.core.settings import Settings

            return run_judge(planned, exported, Settings().without_prefix("AIRFLOW_"), say)

    return judge()


def _compare() -> Any:
    @task(task_id=COMPARE, multiple_outputs=False)
    def compare() -> dict[str, Any]:
        """The leaderboard, in this task's log."""
        planned = read_plan()
        with report_errors():
            from tipbench.airflow.comparing import compare_all
            from tipbench.core.settings import Settings

            return compare_all(planned, Settings(), say)

    return compare()


def __getattr__(name: str) -> DAG:
    """Make `dag`, for the default host, only when it is imported: Airflow registers every DAG that is created."""
    if name == "dag":
        return bench_collect()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
