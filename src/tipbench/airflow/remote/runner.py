"""Runs on an Airflow: each job is a run of the DAG there, whoever started it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tipbench.airflow.remote.answers import Answers
from tipbench.airflow.remote.calls import Calls
from tipbench.airflow.remote.client import in_path
from tipbench.airflow.remote.logs import Logs
from tipbench.airflow.remote.outcomes import Outcomes, outcome, telling
from tipbench.airflow.remote.records import DAG_ID, EXPORT, PLAN, PLANNED, RETURNED, DagRun, conf_of
from tipbench.airflow.remote.run_snapshot import Moment, Moments
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
    """Nothing is kept here but what was read: another one after it finds the same jobs."""

    is_here = False

    def __init__(
        self, calls: Calls, answers: Answers | None, clock: Callable[[], float], new_id: Callable[[], str]
    ) -> None:
        self._calls = calls
        self._answers = answers
        self._clock = clock
        self._new_id = new_id
        self._moments = Moments(calls, clock)
        self._outcomes = Outcomes(calls)
        self._logs = Logs(calls)
        if answers:
            answers.start()

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        refuse_credentials(options)
        if (options.mlflow_url or "").startswith(SCHEME):
            raise InvalidInput(
                f"mlflow_url: Airflow's workers can't see the database file {options.mlflow_url}; run an MLflow "
                "server, and start this server with --mlflow-url http://…"
            )
        options = load_suite(options.suite).fit(options)
        job_id = self._new_id()
        self._calls.begin(job_id, conf_of(options, retry_failed, fresh))
        return self.job(job_id)

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        runs = self._calls.newest(limit, before_ms)
        is_paused = any(run.state == "queued" for run in runs) and self._calls.is_paused()
        endings = self._outcomes.of(runs)
        is_told = all("experiment" in run.conf for run in runs)  # as in all that were started here
        defaults = {} if is_told else self._calls.defaults()
        return [self._listed(run, endings.get(run.id), is_paused, defaults) for run in runs]

    def job(self, job_id: str) -> Job:
        moment = self._moments.of(job_id)
        run = moment.run
        ending = _ending(moment) if run.ended else None
        job = self._listed(run, ending, moment.is_paused)
        options = moment.table(moment.task(PLAN), PLANNED).get("options")  # with the DAG's and the suite's defaults
        config = config_of(options) if isinstance(options, dict) else job.config
        link = moment.table(moment.task(EXPORT), RETURNED).get("link")
        links = {"The judge's batch in MLflow": link} if isinstance(link, str) else {}
        job = replace(job, config=config, links={**job.links, **links})
        if run.ended and not moment.is_settled:
            return replace(job, state="running", ended_ms=None, exit_status=None, cancelling=True)
        return job

    def progress(self, job_id: str) -> Progress:
        job, moment = self.job(job_id), self._moments.of(job_id)
        told = progress_of(moment, job.experiment, round(self._clock() * 1000))
        return replace(told, message=job.message, eta_s=None) if job.ended else told

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        moment = self._moments.of(job_id)
        return self._logs.end_of(moment.run, moment.tasks, last_bytes)

    def cancel(self, job_id: str) -> Job:
        if not self._calls.run(job_id).ended:
            self._calls.cancel(job_id)
        self._moments.forget(job_id)
        return self.job(job_id)

    def close(self) -> None:
        if self._answers:
            self._answers.close()
        self._calls.close()

    def _listed(
        self, run: DagRun, ending: Ending | None, is_paused: bool, defaults: Mapping[str, Any] | None = None
    ) -> Job:
        waits = PAUSED if is_paused and run.state == "queued" else ""
        return Job(
            id=run.id,
            state=ending.state if ending else "queued" if run.state == "queued" else "running",
            config=config_of({**(defaults or {}), **run.conf}),
            created_ms=run.created_ms,
            started_ms=run.started_ms,
            ended_ms=run.ended_ms,
            exit_status=ending.exit_status if ending else None,
            message=ending.message if ending else waits,
            links={"Airflow": f"{self._calls.address}/dags/{DAG_ID}/runs/{in_path(run.id)}"},
        )


def config_of(conf: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration table as the run has it, as far as it goes: anybody may have written the conf."""
    given = {key: _shown(key, conf[key]) for key in Options.model_fields if key in conf}
    return Options().model_dump(mode="json") | given


def _shown(key: str, value: Any) -> Any:
    if isinstance(value, str):
        return printable(without_credentials(value) if key.endswith("_url") else value, 2_000)
    return value if value is None or isinstance(value, bool | int | float) else shown(value, 200)


def _ending(moment: Moment) -> Ending:
    asked = telling(moment.run, moment.tasks)
    return outcome(moment.run, moment.tasks, moment.value(*asked) if asked else None)
