"""Runs on this machine: each job is its own process and survives the server."""

import logging
from collections.abc import Callable
from pathlib import Path

from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.residency import unload_leftover_models
from tipbench.bench.options import Options, make_options
from tipbench.bench.suites.load import load_suite
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.server.jobs.interface import ACTION, JUDGE, PUBLISH, Job, Runner
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.job_watch import RESUMABLE_NOTE, engines_of, judge_engines, needs_of
from tipbench.server.jobs.local_jobs import GRACE_S, LocalJobs
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.simulation_asked import refuse_credentials

_NOTHING_LOADED = ("starting", "waiting")

_log = logging.getLogger(__name__)


class BenchJobKind:
    """Collections: `tipbench run`, which may leave a model in memory."""

    unfinished_note = RESUMABLE_NOTE

    def __init__(self, home: Path, settings: Settings) -> None:
        self._home = home
        self._settings = settings

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        config = stored.job.config
        if stored.job.is_judging:
            return folder.judge_command(config)
        if stored.job.is_publishing:
            return folder.publish_command(config)
        return folder.command(config.get("judge"), stored.retry_failed, stored.fresh)

    def name(self, job: Job) -> str:
        return f"job {job.id} ({printable(job.experiment, 80)})"

    def clean_up(self, stored: StoredJob, progress: Progress | None) -> str:
        """Unload the job's models; return text for its message if one may still be loaded."""
        if progress is None or progress.phase in _NOTHING_LOADED or stored.job.is_publishing:
            return ""
        try:
            options = make_options({key: value for key, value in stored.job.config.items() if key != ACTION})
            used = judge_engines(options, self._settings) if stored.job.is_judging else None
            with open_engines(options, self._settings) as engines:
                for name in sorted(engines_of(options, self._settings) if used is None else used):
                    unload_leftover_models(engines.named(name), self._home, _log.info)
        except Exception as error:  # noqa: BLE001 - the job has ended anyway, and its message says what is wrong
            return f"; a model that it used may still be loaded: {printable(str(error), 300)}"
        return ""


def open_runner(
    address: str,  # noqa: ARG001 - all runners have the same signature
    home: Path,
    settings: Settings,
    clock: Callable[[], float],
    new_id: Callable[[], str],
) -> Runner:
    return SubprocessRunner(home, settings, clock, new_id)


class SubprocessRunner(LocalJobs):
    """Runs collections as processes of this machine. One instance per home."""

    is_local = True

    def __init__(
        self,
        home: Path,
        settings: Settings,
        clock: Callable[[], float],
        new_id: Callable[[], str],
        grace_s: float = GRACE_S,
    ) -> None:
        self._settings = settings
        kind = BenchJobKind(home.absolute(), settings)
        super().__init__(home, "jobs", "lock", kind, settings, clock, new_id, grace_s)

    def judge(self, options: Options) -> Job:
        refuse_credentials(options)
        config = {"experiment": options.experiment, "mlflow_url": options.mlflow_url, "judge": options.judge}
        config |= {"ollama_url": options.ollama_url}
        used = judge_engines(options, self._settings)
        return self.add({**config, ACTION: JUDGE}, needs_of(options, self._settings, used))

    def publish(self, options: Options) -> Job:
        refuse_credentials(options)
        config = {"experiment": options.experiment, "mlflow_url": options.mlflow_url}
        return self.add({**config, ACTION: PUBLISH}, needs=())  # collections don't wait for it

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        refuse_credentials(options)
        options = load_suite(options.suite).apply_defaults(options)
        return self.add(options.model_dump(mode="json"), needs_of(options, self._settings), retry_failed, fresh)
