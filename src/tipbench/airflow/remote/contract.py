"""What the DAG and whoever watches its runs have agreed on: names of tasks, of what they tell, and of answers."""

from typing import Any

from tipbench.bench.options import Options

DAG_ID = "bench_collect"
PLAN, COLLECT, EXPORT = "plan", "collect", "export_for_judge"
JUDGE, WAIT, COMPARE = "judge", "wait_for_judge", "compare"

# Keys of XComs.
PLANNED = "planned"  # of plan
PROGRESS = "progress"  # of each collect, while it goes
PROBLEM = "problem"  # of a task that failed: what a user should read
RETURNED = "return_value"

RETRY_FAILED, FRESH = "retry_failed", "fresh"  # beside the options in a run's conf
CANCELLED = "cancelled by tipbench"  # the note of a run that we have ended
APPLIED = "The scores are applied"  # an answer to wait_for_judge


def is_collect(task_id: str) -> bool:
    """Each host's models are collected by a task of their own."""
    return task_id == COLLECT or task_id.startswith(f"{COLLECT}_")


def conf_of(options: Options, retry_failed: bool, fresh: bool) -> dict[str, Any]:
    """A run's conf; what is left out has its default. The default Ollama is left out: the DAG has hosts of its own."""
    conf = {key: value for key, value in options.model_dump(mode="json").items() if value is not None}
    if options.ollama_url == Options.model_fields["ollama_url"].default:
        del conf["ollama_url"]
    return conf | ({RETRY_FAILED: True} if retry_failed else {}) | ({FRESH: True} if fresh else {})
