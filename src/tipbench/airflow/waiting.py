"""wait_for_judge: waits for scores, without a worker, and goes on when they are there, wherever they come from."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param

from tipbench.airflow.approval_prompt import question_of, subject_of
from tipbench.airflow.remote.records import APPLIED, EXPORT
from tipbench.airflow.task import of_plan, pulled, say, told

WITHOUT = "Compare without them"
_LOOK_EVERY = timedelta(minutes=5)  # at MLflow, for scores that came without a word to Airflow
FORM = {
    "scores": Param(
        None,
        type=["null", "string"],  # a plain string Airflow's form would want to be filled in before anything is chosen
        format="multiline",
        title="Scores",
        description="To apply scores here, paste the batch's judge.json, filled in, and choose "
        f"'{APPLIED}'. Otherwise leave it empty.",
    )
}


class WaitForJudge(HITLOperator):
    """Parked in Airflow as a required action. It wakes when somebody answers, and now and then by itself."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            subject="Scores are waited for",
            options=[APPLIED, WITHOUT],
            response_timeout=_LOOK_EVERY,
            **kwargs,
        )

    def execute(self, context: Any) -> dict[str, Any]:
        return self._look(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        if event.get("error_type") == "timeout":
            return self._look(context)
        answer: Mapping[str, Any] = super().execute_complete(context, event)
        if WITHOUT in answer["chosen_options"]:
            return {"in_short": "compared without waiting for the scores"}
        pasted = str(answer["params_input"].get("scores") or "").strip()
        if pasted:
            self._paste(pasted)
        return self._look(context)

    def _look(self, context: Any) -> dict[str, Any]:
        """Ends when the scores are there; asks, or asks again, when they are not."""
        from tipbench.airflow.judging import reason_to_go_on
        from tipbench.core.settings import Settings

        planned, exported = of_plan(), pulled(EXPORT)
        with told():
            reason = reason_to_go_on(planned, exported, Settings(), say)
        if reason:
            return {"in_short": reason}
        self.subject = subject_of(exported)
        self.body = question_of(exported, planned["mlflow_url"])
        super().execute(context)
        raise AssertionError("a task that waits does not come here")

    def _paste(self, text: str) -> None:
        """Applies what was pasted; says in the log what is wrong with it, because the question's words stay."""
        from tipbench.airflow.judging import apply_pasted
        from tipbench.core.errors import InvalidInput, TrackingUnreachable
        from tipbench.core.settings import Settings

        planned, exported = of_plan(), pulled(EXPORT)
        with told():
            try:
                say(apply_pasted(planned, exported, text, Settings(), say)["in_short"])
            except (InvalidInput, TrackingUnreachable) as error:
                say(f"What was pasted was not applied: {error}")
