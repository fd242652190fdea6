"""Tells runs that wait for a judge that the scores are there, as soon as this server's store has them."""

import logging
import threading
from typing import Any, NamedTuple

from tipbench.airflow.remote.calls import Calls
from tipbench.airflow.remote.records import EXPORT, PLAN, PLANNED, RETURNED, Question, Task
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.batches import batch_runs, is_applied
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable, without_credentials

EVERY_S = 10.0
_log = logging.getLogger(__name__)


class _Batch(NamedTuple):
    experiment: str
    id: str


class Answers:
    """A thread that goes on whatever happens: Airflow or MLflow may be away for a while.

    Runs whose results go elsewhere are left alone: nobody's credentials are sent to an address that a run names.
    """

    def __init__(
        self,
        calls: Calls,
        address: str,
        settings: Settings,
        every_s: float = EVERY_S,
    ) -> None:
        self._calls = calls
        self._address = without_credentials(address)
        self._settings = settings
        self._every_s = every_s
        self._said = ""
        self._asked: set[Question] = set()
        self._batches: dict[Question, _Batch | None] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="answers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def snapshot(self) -> list[str]:
        """One round; the runs that were answered.

        What is asked for the first time waits for the next round: an answer within seconds can make Airflow fail the
        task that asked.
        """
        asked = self._calls.questions()
        settled = [question for question in asked if question in self._asked]
        self._asked = set(asked)
        self._batches = {question: self._batch_of(question) for question in settled}
        wanted = {question: batch for question, batch in self._batches.items() if batch}
        applied = self._applied({batch.experiment for batch in wanted.values()}) if wanted else set()
        return [question.run_id for question, batch in wanted.items() if batch in applied and self._answer(question)]

    def _watch(self) -> None:
        while not self._closed.wait(self._every_s):
            try:
                for run_id in self.snapshot():
                    _log.info("run %s goes on: its scores are there", printable(run_id, 80))
                self._said = ""
            except TipbenchError as error:
                self._say_once(str(error))
            except Exception:  # noqa: BLE001 - a bug: somebody must go on answering
                _log.exception("looking for runs that wait for a judge failed; trying again")

    def _say_once(self, problem: str) -> None:
        if problem != self._said:
            self._said = problem
            _log.warning("runs that wait for a judge can't be answered for now: %s", printable(problem, 500))

    def _batch_of(self, question: Question) -> _Batch | None:
        """What it waits for, if that is kept in this server's store; asked of Airflow once."""
        if question in self._batches:
            return self._batches[question]
        planned, exported = self._told(question, PLAN, PLANNED), self._told(question, EXPORT, RETURNED)
        is_ours = without_credentials(str(planned.get("mlflow_url") or "")) == self._address
        if not is_ours or not exported.get("batch"):
            return None
        return _Batch(str(exported.get("experiment")), str(exported["batch"]))

    def _applied(self, experiments: set[str]) -> set[_Batch]:
        """All batches of these experiments whose scores are there."""
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
        """False where somebody else has answered meanwhile, or the run has ended."""
        try:
            self._calls.answer(question.run_id)
        except InvalidInput as error:
            _log.info("run %s needs no answer any more: %s", printable(question.run_id, 80), printable(str(error), 300))
            return False
        return True

    def _told(self, question: Question, task_id: str, key: str) -> dict[str, Any]:
        found = self._calls.value(question.run_id, Task(task_id), key)
        return found if isinstance(found, dict) else {}
