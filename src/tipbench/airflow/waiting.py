"""The task `wait_for_judge`: waits for scores without occupying a worker, wherever the scores come from."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param

from tipbench.airflow.approval_prompt import question_of, subject_of
from tipbench.airflow.remote.records import APPLIED, EXPORT
from tipbench.airflow.task import pull_xcom, read_plan, report_errors, say

WITHOUT = "Compare without them"
_POLL_INTERVAL = timedelta(minutes=5)  # of MLflow, for scores that were stored without an answer in Airflow
FORM = {
    "scores": Param(
        None,
        type=["null", "string"],  # for a plain string, Airflow's form would require a value
        format="multiline",
        title="Scores",
        description="To apply scores here, paste the batch's judge.json, filled in, and choose "
        f"'{APPLIED}'. Otherwise leave it empty.",
    )
}


class WaitForJudge(HITLOperator):
    """Deferred in Airflow as a required action; resumes when somebody answers, and at intervals to poll MLflow."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            subject="Waiting for scores",
            options=[APPLIED, WITHOUT],
            response_timeout=_POLL_INTERVAL,
            **kwargs,
        )

    def execute(self, context: Any) -> dict[str, Any]:
        return self._poll(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        if event.get("error_type") == "timeout":
            return self._poll(context)
        answer: Mapping[str, Any] = super().execute_complete(context, event)
        if WITHOUT in answer["chosen_options"]:
            return {"in_short": "compared without waiting for the scores"}
        pasted = str(answer["params_input"].get("scores") or "").strip()
        if pasted:
            self._apply(pasted)
        return self._poll(context)

    def _poll(self, context: Any) -> dict[str, Any]:
        """Return if the scores are there or nothing waits for them; otherwise defer the task and prompt (again)."""
        from tipbench.airflow.judging import reason_to_continue
        from tipbench.core.settings import Settings

        planned, exported = read_plan(), pull_xcom(EXPORT)
        with report_errors():
            reason = reason_to_continue(planned, exported, Settings(), say)
        if reason:
            return {"in_short": reason}
        self.subject = subject_of(exported)
        self.body = question_of(exported, planned["mlflow_url"])
        super().execute(context)
        raise AssertionError("a task that waits does not come here")

    def _apply(self, text: str) -> None:
        """Apply pasted scores. What is wrong with them is logged, because the prompt's text can't change."""
        from tipbench.airflow.judging import apply_pasted
        from tipbench.core.errors import InvalidInput, TrackingUnreachable
        from tipbench.core.settings import Settings

        planned, exported = read_plan(), pull_xcom(EXPORT)
        with report_errors():
            try:
                say(apply_pasted(planned, exported, text, Settings(), say)["in_short"])
            except (InvalidInput, TrackingUnreachable) as error:
                say(f"The pasted scores were not applied: {error}")
