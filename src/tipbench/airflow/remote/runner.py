"""The job runner for Airflow: each job is a run of the DAG, whoever started it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tipbench.airflow.remote.answers import AnswerThread
from tipbench.airflow.remote.calls import DagClient
from tipbench.airflow.remote.client import path_segment
from tipbench.airflow.remote.logs import Logs
from tipbench.airflow.remote.outcomes import OutcomeCache, outcome, outcome_source
from tipbench.airflow.remote.records import DAG_ID, EXPORT, PLAN, PLANNED, RETURNED, DagRun, conf_of
from tipbench.airflow.remote.run_snapshot import RunSnapshot, SnapshotCache
from tipbench.airflow.remote.run_status import PAUSED, progress_of
from tipbench.bench.options import Options
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.embedded import SCHEME
from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import printable, shown, without_credentials
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_watch import Ending
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import refuse_credentials


class AirflowRunner:
    """Runs jobs on Airflow. Holds only caches, so a new runner finds the same jobs."""

    is_local = False

    def __init__(
        self, client: DagClient, answers: AnswerThread | None, clock: Callable[[], float], new_id: Callable[[], str]
    ) -> None:
        self._client = client
        self._answers = answers
        self._clock = clock
        self._new_id = new_id
        self._snapshots = SnapshotCache(client, clock)
        self._outcomes = OutcomeCache(client)
        self._logs = Logs(client)
        if answers:
            answers.start()

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        refuse_credentials(options)
        if (options.mlflow_url or "").startswith(SCHEME):
            raise InvalidInput(
                f"mlflow_url: Airflow's workers can't access the database file {options.mlflow_url}; run an MLflow "
                "server, and start this server with --mlflow-url http://…"
            )
        options = load_suite(options.suite).apply_defaults(options)
        job_id = self._new_id()
        self._client.start_run(job_id, conf_of(options, retry_failed, fresh))
        return self.job(job_id)

    def judge(self, options: Options) -> Job:
        raise InvalidInput(
            f"judge: Airflow runs a judge as part of a run; on this machine, 'tipbench judge --experiment "
            f"{options.experiment} --run {options.judge}' has it score what is pending"
        )

    def publish(self, options: Options) -> Job:
        raise InvalidInput(
            f"publish: Airflow only runs collections; on this machine, 'tipbench publish --experiment "
            f"{options.experiment}' shows it on MLflow's pages"
        )

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        runs = self._client.newest_runs(limit, before_ms)
        is_paused = any(run.state == "queued" for run in runs) and self._client.is_paused()
        endings = self._outcomes.of(runs)
        has_experiments = all("experiment" in run.conf for run in runs)  # true for all runs that were started here
        defaults = {} if has_experiments else self._client.defaults()
        return [self._listed(run, endings.get(run.id), is_paused, defaults) for run in runs]

    def job(self, job_id: str) -> Job:
        snapshot = self._snapshots.of(job_id)
        run = snapshot.run
        ending = _ending(snapshot) if run.ended else None
        job = self._listed(run, ending, snapshot.is_paused)
        # The plan's options include the defaults of the DAG and the suite.
        options = snapshot.mapping(snapshot.task(PLAN), PLANNED).get("options")
        config = config_of(options) if isinstance(options, dict) else job.config
        link = snapshot.mapping(snapshot.task(EXPORT), RETURNED).get("link")
        links = {"The judge's batch in MLflow": link} if isinstance(link, str) else {}
        job = replace(job, config=config, links={**job.links, **links})
        if run.ended and not snapshot.is_settled:
            return replace(job, state="running", ended_ms=None, exit_status=None, cancelling=True)
        return job

    def progress(self, job_id: str) -> Progress:
        job, snapshot = self.job(job_id), self._snapshots.of(job_id)
        progress = progress_of(snapshot, job.experiment, round(self._clock() * 1000))
        return replace(progress, message=job.message, eta_s=None) if job.ended else progress

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        snapshot = self._snapshots.of(job_id)
        return self._logs.tail(snapshot.run, snapshot.tasks, last_bytes)

    def cancel(self, job_id: str) -> Job:
        if not self._client.run(job_id).ended:
            self._client.cancel(job_id)
        self._snapshots.forget(job_id)
        return self.job(job_id)

    def close(self) -> None:
        if self._answers:
            self._answers.close()
        self._client.close()

    def _listed(
        self, run: DagRun, ending: Ending | None, is_paused: bool, defaults: Mapping[str, Any] | None = None
    ) -> Job:
        waiting = PAUSED if is_paused and run.state == "queued" else ""
        return Job(
            id=run.id,
            state=ending.state if ending else "queued" if run.state == "queued" else "running",
            config=config_of({**(defaults or {}), **run.conf}),
            created_ms=run.created_ms,
            started_ms=run.started_ms,
            ended_ms=run.ended_ms,
            exit_status=ending.exit_status if ending else None,
            message=ending.message if ending else waiting,
            links={"Airflow": f"{self._client.address}/dags/{DAG_ID}/runs/{path_segment(run.id)}"},
        )


def config_of(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a run to show. Untrusted: anybody may have written the conf."""
    given = {key: _showable(key, conf[key]) for key in Options.model_fields if key in conf}
    return Options().model_dump(mode="json") | given


def _showable(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return printable(without_credentials(value) if key.endswith("_url") else value, 2_000)
    return value if value is None or isinstance(value, bool | int | float) else shown(value, 200)


def _ending(snapshot: RunSnapshot) -> Ending:
    source = outcome_source(snapshot.run, snapshot.tasks)
    return outcome(snapshot.run, snapshot.tasks, snapshot.value(*source) if source else None)
