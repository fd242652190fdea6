"""Collections: `tipbench run`, which may leave a model in memory."""

import logging
from pathlib import Path

from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.residency import unload_left
from tipbench.bench.options import make_options
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.server.jobs.exit_reason import KEPT
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.resource_locks import engines_of

_NOTHING_LOADED = ("starting", "waiting")

_log = logging.getLogger(__name__)


class BenchWork:
    kept = KEPT

    def __init__(self, home: Path, settings: Settings) -> None:
        self._home = home
        self._settings = settings

    def command(self, stored: StoredJob, folder: JobFolder) -> list[str]:
        return folder.command(stored.job.config.get("judge"), stored.retry_failed, stored.fresh)

    def name(self, job: Job) -> str:
        return f"job {job.id} ({printable(job.experiment, 80)})"

    def tidied(self, stored: StoredJob, progress: Progress | None) -> str:
        """Whatever ended it, no model stays in memory; words for its message when one does."""
        if progress is None or progress.phase in _NOTHING_LOADED:
            return ""
        try:
            options = make_options(stored.job.config)
            with open_engines(options, self._settings) as engines:
                for name in sorted(engines_of(options, self._settings)):
                    unload_left(engines.named(name), self._home, _log.info)
        except Exception as error:  # noqa: BLE001 - the job has ended all the same, and its message tells what is wrong
            return f"; a model that it used may still be loaded: {printable(str(error), 300)}"
        return ""
