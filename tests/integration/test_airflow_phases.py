"""The phases as workers run them: what crosses hosts goes through a real MLflow, and every phase can be repeated."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.filling import filled
from tests.integration.mlflow_server import MlflowServer
from tests.integration.ollama_hosts import OllamaHost
from tipbench.airflow import judging
from tipbench.airflow.collecting import collect_share
from tipbench.airflow.comparing import compare_all
from tipbench.airflow.judging import apply_pasted, export, is_scored, reason_to_continue, run_judge
from tipbench.airflow.planning import plan_run
from tipbench.airflow.request import CellsFailed, read_conf
from tipbench.bench.engines.http import PAUSES_S
from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.batches import batch_file
from tipbench.bench.tracking.runs import CELL, KIND, SUPERSEDED
from tipbench.core.errors import EngineUnreachable, InvalidInput, JudgeFailed, Problems
from tipbench.core.settings import Settings

pytestmark = pytest.mark.timeout(120)

HOSTS = ("http://localhost:11434",)
STAND_IN = Path(__file__).parents[1] / "stand_in_agent.py"
LATER_MS = 4_000_000_000_000


class Workers:
    """Each with a disk of its own, which may be lost."""

    def __init__(self, mlflow: MlflowServer, folder: Path, experiment: str) -> None:
        self.experiment = experiment
        self.folder = folder
        self.said: list[str] = []
        self.told: list[dict[str, Any]] = []
        self._mlflow = mlflow

    def settings(self, worker: str = "one", **more: str) -> Settings:
        home = str(self.folder / worker)
        return Settings(
            {"TIPBENCH_HOME": home, "MLFLOW_TRACKING_URI": self._mlflow.url, "PATH": "/usr/bin:/bin", **more}
        )

    def plan(self, *hosts: str, asked_ms: int = LATER_MS, **conf: Any) -> dict[str, Any]:
        request = read_conf({"experiment": self.experiment, **conf}, {"ollama_url": ",".join(hosts or HOSTS)})
        return plan_run(request, hosts or HOSTS, self.settings(), asked_ms, self.said.append)

    def collect(self, planned: dict[str, Any], worker: str = "one", again: bool = False) -> list[dict[str, Any]]:
        shares = [{"model": one["model"], "ollama_url": one["ollama_url"]} for one in planned["models"]]
        settings = self.settings(worker)
        return [collect_share(planned, job, settings, again, self.told.append, self.said.append) for job in shares]

    def export(self, planned: dict[str, Any], worker: str = "two") -> dict[str, Any]:
        return export(planned, self.settings(worker), self.said.append)

    def file(self, exported: dict[str, Any]) -> dict[str, Any]:
        store = open_store(self._mlflow.url, Settings()).store
        try:
            runs = store.runs(store.experiment(self.experiment), {"tipbench.batch": exported["batch"]})
            return batch_file(store, runs[0])
        finally:
            store.close()

    def cells(self) -> int:
        store = open_store(self._mlflow.url, Settings()).store
        try:
            return sum(
                SUPERSEDED not in run.tags for run in store.runs(store.experiment(self.experiment), {KIND: CELL})
            )
        finally:
            store.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many tries as ever, sooner."""
    monkeypatch.setattr("tipbench.bench.engines.http.PAUSES_S", [0.1] * len(PAUSES_S))


@pytest.fixture
def workers(mlflow: MlflowServer, tmp_path: Path, request: pytest.FixtureRequest) -> Workers:
    return Workers(mlflow, tmp_path, f"tip-bench-{request.node.name}"[:150])


@pytest.fixture
def host() -> Iterator[OllamaHost]:
    with OllamaHost({"ant:1b": 1_000_000_000, "bee:9b": 9_000_000_000}) as made:
        yield made


SMALL: dict[str, Any] = {"models": "scripted/a,scripted/b", "prompts": "v1", "n_scenarios": 2}


def test_the_whole_path_with_every_task_on_another_disk(workers: Workers) -> None:
    planned = workers.plan(**SMALL)
    assert (planned["cells"], planned["to_do"], planned["stored"]) == (4, 4, 0)
    json.dumps(planned)  # it travels as JSON
    told = workers.collect(planned)
    assert [(one["model"], one["done"], one["failed"]) for one in told] == [("scripted/a", 2, 0), ("scripted/b", 2, 0)]
    shutil.rmtree(workers.folder / "one")
    exported = workers.export(planned)
    assert exported["uri"] == f"runs:/{exported['run_id']}/judge.json"
    shutil.rmtree(workers.folder / "two", ignore_errors=True)
    settings = workers.settings("three")
    assert not is_scored(planned, exported, settings)
    apply_pasted(planned, exported, json.dumps(filled(workers.file(exported))), settings, workers.said.append)
    assert is_scored(planned, exported, settings)
    compared = compare_all(planned, workers.settings("four"), workers.said.append)
    assert compared["missing"] == {}
    assert compared["in_short"].startswith("Too few personas to compare 2 variants: you have 2, ")
    assert "| scripted/a" in workers.said[-1], "the leaderboard is in the log"


def test_every_task_can_be_repeated(workers: Workers) -> None:
    planned = workers.plan(**SMALL)
    workers.collect(planned)
    first = workers.export(planned)
    again = workers.plan(**SMALL)
    assert (again["stored"], again["to_do"]) == (4, 0)
    assert [one["stored"] for one in workers.collect(again, "another")] == [2, 2]
    assert workers.cells() == 4
    assert workers.export(again)["batch"] == first["batch"], "somebody may be scoring it"
    more = workers.plan(**{**SMALL, "n_scenarios": 3})
    workers.collect(more)
    assert workers.export(more)["batch"] != first["batch"], "it holds more than before"


def test_starting_over_sets_aside_what_is_older_and_nothing_of_its_own(workers: Workers) -> None:
    workers.collect(workers.plan(**SMALL))
    asked_ms = max(one.started_ms for one in _runs(workers)) + 1
    fresh = workers.plan(**SMALL, fresh=True, asked_ms=asked_ms)
    assert fresh["to_do"] == 4
    assert "4 stored cells no longer count" in workers.said[-1]
    workers.collect(fresh)
    assert workers.plan(**SMALL, fresh=True, asked_ms=asked_ms)["to_do"] == 0, (
        "plan was cleared, and had done it before"
    )
    assert workers.cells() == 4


def _runs(workers: Workers) -> list[Any]:
    store = open_store(workers._mlflow.url, Settings()).store
    try:
        return store.runs(store.experiment(workers.experiment), {KIND: CELL})
    finally:
        store.close()


def test_cells_that_failed_fail_the_task_and_are_tried_again_with_it(workers: Workers, host: OllamaHost) -> None:
    host.failing.add("ant:1b")
    planned = workers.plan(host.url, models="ant:1b", prompts="v1", n_scenarios=2)
    with pytest.raises(CellsFailed, match=r"2 of 2 cells of ant:1b failed, the first with: .*exit status 2"):
        workers.collect(planned)
    assert workers.told[-1]["failed"] == 2
    assert compare_all(planned, workers.settings(), workers.said.append)["missing"] == {"ant:1b": 2}
    with pytest.raises(CellsFailed, match="2 of 2 cells"):
        workers.collect(planned)
    assert compare_all(planned, workers.settings(), workers.said.append)["missing"] == {"ant:1b": 2}
    host.failing.clear()
    (told,) = workers.collect(planned, again=True)
    assert (told["done"], told["failed"]) == (2, 0)
    assert compare_all(planned, workers.settings(), workers.said.append)["missing"] == {}


def test_what_is_missing_is_what_mlflow_does_not_have(workers: Workers, host: OllamaHost) -> None:
    """A task's last try says nothing where its host is gone; what the try before stored is there all the same."""
    planned = workers.plan(host.url, models="scripted/a,ant:1b", prompts="v1", n_scenarios=2)
    first, second = planned["models"]
    workers.collect({**planned, "models": [first]})
    compared = compare_all(planned, workers.settings(), workers.said.append)
    assert compared["missing"] == {second["model"]: 2}
    assert compared["in_short"].startswith(f"2 cells are missing ({second['model']}).")
    assert f"CELLS ARE MISSING: 2 of {second['model']}." in workers.said
    workers.collect({**planned, "models": [second]})
    workers.told.clear()
    with pytest.raises(EngineUnreachable):
        workers.collect({**planned, "models": [{**second, "ollama_url": "http://127.0.0.1:9", "model": "ant:1b"}]})
    assert not workers.told
    assert compare_all(planned, workers.settings(), workers.said.append)["missing"] == {}


def test_models_go_where_they_are_and_what_is_wrong_is_told_at_once(workers: Workers, host: OllamaHost) -> None:
    with OllamaHost({"cat:1b": 1_000_000_000}) as other:
        planned = workers.plan(host.url, other.url, models="cat:1b,ant:1b,scripted/a")
        assert {one["model"]: one["ollama_url"] for one in planned["models"]} == {
            "ant:1b": host.url,
            "scripted/a": host.url,
            "cat:1b": other.url,
        }
        with pytest.raises(Problems) as refused:
            workers.plan(host.url, other.url, models="bee:9b,dog:1b", prompts="v9", judge="nobody", n_scenarios=99)
        told = "\n".join(refused.value.problems)
        for part in ("bee:9b: 9.00 billion", f"dog:1b: Ollama at {other.url}", "'v9'", "no judge 'nobody'", "99"):
            assert part in told
    assert not host.answered


def test_a_model_that_differs_between_hosts_is_refused(workers: Workers, host: OllamaHost) -> None:
    with OllamaHost({"ant:1b": 1_000_000_000}) as other:
        other.digests["ant:1b"] = "sha256:older"
        with pytest.raises(Problems, match="ant:1b: is not the same on all hosts"):
            workers.plan(host.url, other.url, models="ant:1b")


def test_a_database_file_is_refused(workers: Workers) -> None:
    with pytest.raises(InvalidInput, match=r"sqlite:////data/m\.db is not visible to every worker"):
        workers.plan(**SMALL, mlflow_url="sqlite:////data/m.db")


def test_a_host_that_is_away_may_be_back_by_the_next_try(workers: Workers) -> None:
    with pytest.raises(EngineUnreachable, match=r"http://127\.0\.0\.1:9"):
        workers.plan("http://127.0.0.1:9", models="ant:1b")


def test_a_host_that_is_away_is_done_without_where_others_have_the_models(workers: Workers, host: OllamaHost) -> None:
    planned = workers.plan("http://127.0.0.1:9", host.url, models="ant:1b")
    assert [one["ollama_url"] for one in planned["models"]] == [host.url]
    assert "http://127.0.0.1:9" in workers.said[-1]
    assert workers.said[-1].endswith("its models go to other hosts.")


def test_a_judge_that_is_a_model_has_to_be_on_the_first_host(workers: Workers, host: OllamaHost) -> None:
    request = read_conf({"experiment": workers.experiment, **SMALL, "judge": "model"}, {"ollama_url": host.url})
    missing, large = (workers.settings(TIPBENCH_JUDGE_MODEL=model) for model in ("cat:1b", "bee:9b"))
    with pytest.raises(Problems, match="cat:1b: Ollama at"):
        plan_run(request, [host.url], missing, LATER_MS, workers.said.append)
    assert plan_run(request, [host.url], large, LATER_MS, workers.said.append)["judge_url"] == host.url


def test_a_worker_with_another_suite_refuses_to_go_on(workers: Workers, tmp_path: Path) -> None:
    from tipbench.bench.suites.load import built_in_suites

    suite = tmp_path / "suite"
    shutil.copytree(built_in_suites()["tip"], suite)
    planned = workers.plan(**{**SMALL, "suite": str(suite)})
    prompt = suite / "prompts" / "v1.md"
    prompt.write_text(prompt.read_text() + "\nBe brief.\n")
    with pytest.raises(InvalidInput, match="differs on this worker from where the run was planned"):
        workers.collect(planned)


JUDGE = """
import json, os, sys
leaked = [name for name in os.environ if "AIRFLOW" in name or "MLFLOW" in name or "HOME" in name and "TIPBENCH" in name]
file = json.load(sys.stdin)
for item in file["items"]:
    for criterion in item["scores"]:
        item["scores"][criterion] = 9 if leaked else 3
json.dump(file, sys.stdout)
"""


def test_a_configured_judge_scores_the_batch_without_airflows_secrets(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(JUDGE)
    program = {"TIPBENCH_JUDGE_COMMAND": f"{sys.executable} {tmp_path / 'judge.py'}"}
    secret = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql://me:s3cret@db/airflow"}
    settings = workers.settings(**program, **secret)
    request = read_conf({"experiment": workers.experiment, **SMALL, "judge": "command"}, {})
    planned = plan_run(request, HOSTS, settings, LATER_MS, workers.said.append)
    workers.collect(planned)
    exported = export(planned, settings, workers.said.append)
    assert exported["judge"] == "command"
    told = run_judge(planned, exported, settings.without_prefix("AIRFLOW_"), workers.said.append)
    assert "candidates scored by 'command'" in told["in_short"]
    assert "was scored before" in run_judge(planned, exported, settings, workers.said.append)["in_short"]
    assert export(planned, settings, workers.said.append)["items"] > 0, "in quarantine: three for all is no judging"


def test_an_agent_judges_and_what_it_took_is_stored(workers: Workers) -> None:
    settings = workers.settings(TIPBENCH_JUDGE_AGENT=f"{sys.executable} {STAND_IN}")
    request = read_conf({"experiment": workers.experiment, **SMALL, "judge": "agent"}, {})
    planned = plan_run(request, HOSTS, settings, LATER_MS, workers.said.append)
    workers.collect(planned)
    exported = export(planned, settings, workers.said.append)
    told = run_judge(planned, exported, settings, workers.said.append)
    assert told["in_short"].endswith(" USD")
    assert is_scored(planned, exported, settings)


def test_a_judge_that_fails_leaves_the_batch_for_another_try(workers: Workers) -> None:
    settings = workers.settings(TIPBENCH_JUDGE_COMMAND="/bin/false")
    request = read_conf({"experiment": workers.experiment, **SMALL, "judge": "command"}, {})
    planned = plan_run(request, HOSTS, settings, LATER_MS, workers.said.append)
    workers.collect(planned)
    exported = export(planned, settings, workers.said.append)
    with pytest.raises(JudgeFailed, match="ended with status 1"):
        run_judge(planned, exported, settings, workers.said.append)
    assert export(planned, settings, workers.said.append)["batch"] == exported["batch"]
    assert not is_scored(planned, exported, settings)


def test_a_model_judges_on_the_host_whose_pool_it_is_in(workers: Workers, host: OllamaHost) -> None:
    """Elsewhere it would be in memory beside another run's model, whose pool it does not hold."""
    with OllamaHost({"ant:1b": 1_000_000_000, "cat:1b": 1_000_000_000}) as other:
        settings = workers.settings(TIPBENCH_JUDGE_MODEL="ant:1b")
        conf = {"models": "cat:1b", "prompts": "v1", "n_scenarios": 1, "judge": "model", "ollama_url": other.url}
        request = read_conf({"experiment": workers.experiment, **conf}, {})
        planned = plan_run(request, (host.url, other.url), settings, LATER_MS, workers.said.append)
        workers.collect(planned)
        exported = export(planned, settings, workers.said.append)
        with pytest.raises(JudgeFailed):  # it answers with tips
            run_judge(planned, exported, settings, workers.said.append)
        assert (set(host.answered), set(other.answered)) == ({"ant:1b"}, {"cat:1b"})


def test_what_a_judge_gave_that_can_not_be_applied_is_kept_in_mlflow(workers: Workers, tmp_path: Path) -> None:
    (tmp_path / "judge.py").write_text(JUDGE.replace("json.dump(", 'file["items"][0]["scores"] = {}\njson.dump('))
    settings = workers.settings(TIPBENCH_JUDGE_COMMAND=f"{sys.executable} {tmp_path / 'judge.py'}")
    request = read_conf({"experiment": workers.experiment, **SMALL, "judge": "command"}, {})
    planned = plan_run(request, HOSTS, settings, LATER_MS, workers.said.append)
    workers.collect(planned)
    exported = export(planned, settings, workers.said.append)
    with pytest.raises(InvalidInput, match=f"judged.json of run {exported['run_id']}"):
        run_judge(planned, exported, settings, workers.said.append)
    store = open_store(planned["mlflow_url"], Settings()).store
    (run,) = store.runs(store.experiment(workers.experiment), {"tipbench.batch": exported["batch"]})
    kept = json.loads(store.text(run, "judged.json") or "")
    store.close()
    assert kept["batch"] == exported["batch"]
    assert sum(bool(item["scores"]) for item in kept["items"]) == exported["items"] - 1


def test_scores_that_are_no_answer_to_the_batch_are_refused(workers: Workers) -> None:
    planned = workers.plan(**SMALL)
    workers.collect(planned)
    exported = workers.export(planned)
    settings = workers.settings()
    for pasted in ("{}", "[1", '{"batch": "other"}', json.dumps(workers.file(exported)), "\ud800"):
        with pytest.raises(InvalidInput):
            apply_pasted(planned, exported, pasted, settings, workers.said.append)
    assert not is_scored(planned, exported, settings)


def test_nothing_waits_where_all_is_judged(workers: Workers) -> None:
    planned = workers.plan(**SMALL)
    workers.collect(planned)
    exported = workers.export(planned)
    apply_pasted(planned, exported, json.dumps(filled(workers.file(exported))), workers.settings(), workers.said.append)
    nothing = workers.export(planned)
    assert (nothing["batch"], nothing["items"]) == (None, 0)


def test_scores_of_somebody_else_end_the_wait(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = workers.plan(**SMALL)
    workers.collect(planned)
    exported, settings = workers.export(planned), workers.settings()
    with monkeypatch.context() as context:
        context.setattr(judging, "PERSON", "anna")
        hers = workers.export(planned)
    assert hers["batch"] != exported["batch"]
    assert not is_scored(planned, exported, settings)
    apply_pasted(planned, hers, json.dumps(filled(workers.file(hers))), settings, workers.said.append)
    assert is_scored(planned, exported, settings)
    assert workers.export(planned)["batch"] is None, "nobody is asked for what is judged, also not in the old batch"


def test_the_wait_outlasts_an_mlflow_that_is_away(workers: Workers) -> None:
    planned = workers.plan(**SMALL)
    workers.collect(planned)
    exported, settings = workers.export(planned), workers.settings()
    away = {**planned, "options": {**planned["options"], "mlflow_url": "http://127.0.0.1:9"}}
    assert reason_to_continue(away, exported, settings, workers.said.append) == ""
    assert "Can't check for the scores right now" in workers.said[-1]
    assert reason_to_continue(planned, exported, settings, workers.said.append) == ""
    assert workers.said[-1] == f"MLflow has no scores for batch {exported['batch']} yet."
    apply_pasted(planned, exported, json.dumps(filled(workers.file(exported))), settings, workers.said.append)
    assert "have arrived" in reason_to_continue(planned, exported, settings, workers.said.append)
    nothing = workers.export(planned)
    assert reason_to_continue(planned, nothing, settings, workers.said.append) == "nothing was left for judge 'person'"


def test_nothing_stored_is_nothing_to_judge(workers: Workers) -> None:
    with pytest.raises(InvalidInput, match="there is nothing to judge"):
        workers.export(workers.plan(**SMALL))
