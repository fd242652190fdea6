"""Answers the prompts of runs that wait for a judge, as soon as this server's store has their scores."""

import logging
import threading
from typing import Any, NamedTuple

from tipbench.airflow.remote.calls import DagClient
from tipbench.airflow.remote.records import EXPORT, PLAN, PLANNED, RETURNED, Question, Task
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.batches import batch_runs, is_applied
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable, without_credentials

POLL_INTERVAL_S = 10.0
_log = logging.getLogger(__name__)


class _Batch(NamedTuple):
    experiment: str
    id: str


class AnswerThread:
    """A background thread that keeps polling whatever happens: Airflow or MLflow may be unreachable for a while.

    Runs that store their results elsewhere are ignored: credentials are never sent to an address that a run names.
    """

    def __init__(
        self,
        client: DagClient,
        address: str,
        settings: Settings,
        interval_s: float = POLL_INTERVAL_S,
    ) -> None:
        self._client = client
        self._address = without_credentials(address)
        self._settings = settings
        self._interval_s = interval_s
        self._last_problem = ""
        self._seen: set[Question] = set()
        self._batches: dict[Question, _Batch | None] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def poll(self) -> list[str]:
        """Poll once; return the ids of the runs that were answered.

        Questions that are seen for the first time are left for the next poll: an answer within seconds can make Airflow
        fail the task that asked.
        """
        questions = self._client.questions()
        settled = [question for question in questions if question in self._seen]
        self._seen = set(questions)
        self._batches = {question: self._batch_of(question) for question in settled}
        wanted = {question: batch for question, batch in self._batches.items() if batch}
        applied = self._applied({batch.experiment for batch in wanted.values()}) if wanted else set()
        return [question.run_id for question, batch in wanted.items() if batch in applied and self._answer(question)]

    def _run(self) -> None:
        while not self._closed.wait(self._interval_s):
            try:
                for run_id in self.poll():
                    _log.info("run %s continues: its scores have arrived", printable(run_id, 80))
                self._last_problem = ""
            except TipbenchError as error:
                self._warn_once(str(error))
            except Exception:  # noqa: BLE001 - a bug must not end the thread
                _log.exception("checking for runs that wait for a judge failed; trying again")

    def _warn_once(self, problem: str) -> None:
        if problem != self._last_problem:
            self._last_problem = problem
            _log.warning("runs that wait for a judge can't be resumed right now: %s", printable(problem, 500))

    def _batch_of(self, question: Question) -> _Batch | None:
        """Return the batch it waits for; None if that is not in this server's store. Airflow is asked only once."""
        if question in self._batches:
            return self._batches[question]
        planned, exported = self._xcom_mapping(question, PLAN, PLANNED), self._xcom_mapping(question, EXPORT, RETURNED)
        is_ours = without_credentials(str(planned.get("mlflow_url") or "")) == self._address
        if not is_ours or not exported.get("batch"):
            return None
        return _Batch(str(exported.get("experiment")), str(exported["batch"]))

    def _applied(self, experiments: set[str]) -> set[_Batch]:
        """Return all batches of these experiments whose scores are applied."""
        store = open_store(self._address, self._settings).store
        try:
            found = [(name, store.find_experiment(name)) for name in experiments]
            return {
                _Batch(name, run.tags.get("tipbench.batch", ""))
                for name, experiment in found
                if experiment
                for run in batch_runs(store, experiment)
                if is_applied(run)
            }
        finally:
            store.close()

    def _answer(self, question: Question) -> bool:
        """Answer a question; return False if somebody else has answered it meanwhile, or the run has ended."""
        try:
            self._client.answer(question.run_id)
        except InvalidInput as error:
            _log.info("run %s no longer waits: %s", printable(question.run_id, 80), printable(str(error), 300))
            return False
        return True

    def _xcom_mapping(self, question: Question, task_id: str, key: str) -> dict[str, Any]:
        found = self._client.xcom(question.run_id, Task(task_id), key)
        return found if isinstance(found, dict) else {}
