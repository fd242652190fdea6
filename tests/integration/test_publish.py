"""MLflow's own client and pages read what `tipbench publish` wrote, on a server and in tipbench's own database."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.genai.datasets import search_datasets
from playwright.sync_api import Browser, Page, expect

from tests.integration.command import tipbench
from tests.integration.filling import fill
from tests.integration.mlflow_server import MlflowServer
from tests.integration.serving import ended_job, serving

EXPERIMENT = "tip-bench-published"
SMALL = ("--models", "scripted/a", "--prompts", "v1,v2-mentor", "--n-scenarios", "2", "--n-tips", "2")
WHOLE = ("--models", "scripted/a,scripted/b,scripted/c,scripted/d")  # 96 cells, for the docs' pictures
QUIET = "localStorage.setItem('mlflow.assistant.fab.autoOpenedOnFirstLoad_v1', 'true')"  # no chat that opens itself


def judged(folder: Path, grid: tuple[str, ...], flags: tuple[str, ...]) -> None:
    assert tipbench("collect", *grid, *flags).status == 0
    for judge in ("lena", "ben"):
        file = folder / f"{judge}.json"
        assert tipbench("judge", "--judge", judge, "--export", str(file), "--sample", "5", *flags).status == 0
        scored = fill(file)
        for item in scored["items"]:
            item["note"] = f"as {judge} sees it"
        file.write_text(json.dumps(scored))
        assert tipbench("judge", "--apply", str(file), *flags).status == 0


def published(flags: tuple[str, ...]) -> str:
    done = tipbench("publish", *flags)
    assert done.status == 0, done.err
    return done.out


@pytest.fixture
def tracking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leaves MLflow's own settings as they were."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    before = mlflow.get_tracking_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", before)  # MLflow sets it, too, and it must not outlive the test
    yield
    mlflow.set_tracking_uri(before)


@pytest.mark.usefixtures("tracking")
@pytest.mark.parametrize("store", ["server", "file"])
def test_mlflows_own_client_reads_it(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}" if store == "file" else request.getfixturevalue("mlflow").url
    flags = ("--experiment", EXPERIMENT, "--mlflow-url", url)
    judged(tmp_path, SMALL, flags)
    assert "8 traces with 96 assessments, 2 prompt versions and 2 scenarios; 8 written" in published(flags)
    if store == "server":  # for a file, MLflow is started each time
        assert "MLflow is up to date: 8 traces with 96 assessments" in published(flags)

    mlflow.set_tracking_uri(url)
    experiment = mlflow.get_experiment_by_name(EXPERIMENT)
    traces: list[Any] = mlflow.search_traces(locations=[experiment.experiment_id], return_type="list")
    assert len(traces) == 8
    for trace in traces:
        answer, call = trace.data.spans
        assert (answer.outputs, call.inputs["messages"][-1]["role"]) == (trace.info.response_preview, "user")
        assert answer.outputs in call.outputs
        assert trace.info.token_usage["output_tokens"] > 0
        found = {(one.name, one.source.source_id): one for one in trace.info.assessments}
        assert len(found) == 12
        assert (found["tone", "lena"].rationale, found["tone", "ben"].source.source_type) == (
            "as lena sees it",
            "HUMAN",
        )
        run = mlflow.get_run(trace.info.trace_metadata["mlflow.sourceRun"])
        assert run.data.params["model"] == "scripted/a"
    prompt = mlflow.genai.load_prompt("prompts:/tipbench-tip@v2-mentor")
    assert [one["role"] for one in prompt.template] == ["system", "user"]
    [dataset] = search_datasets(experiment_ids=[experiment.experiment_id])
    inputs = {json.dumps(record["inputs"], sort_keys=True) for record in dataset.to_df().to_dict("records")}
    assert inputs == {json.dumps(trace.data.spans[0].inputs, sort_keys=True) for trace in traces}

    assert tipbench("experiments", "delete", EXPERIMENT, "--yes", "--mlflow-url", url).status == 0
    assert mlflow.search_traces(locations=[experiment.experiment_id], return_type="list") == []
    assert search_datasets(experiment_ids=[experiment.experiment_id]) == []
    assert list(mlflow.genai.search_prompts()) == []


def test_a_job_of_the_server_publishes() -> None:
    assert tipbench("collect", *SMALL, "--experiment", EXPERIMENT).status == 0
    with serving() as served, served.client() as client:
        assert client.post("/api/bench/publish/nothing").status_code == 404
        answer = client.post(f"/api/bench/publish/{EXPERIMENT}")
        assert (answer.status_code, answer.headers["Location"]) == (202, f"/api/jobs/{answer.json()['id']}")
        ended = ended_job(client, answer.json()["id"])
    assert (ended["state"], ended["progress"]["phase"], ended["progress"]["done"]) == ("finished", "done", 4)
    assert "MLflow now has 8 traces with 0 assessments" in ended["progress"]["message"]


def test_its_pages_show_it(mlflow: MlflowServer, browser: Browser, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder: str | None = pytestconfig.getoption("--screenshots")
    flags = ("--experiment", f"{EXPERIMENT}-pages", "--mlflow-url", mlflow.url)
    judged(tmp_path, WHOLE if folder else SMALL, flags)
    published(flags)
    page = browser.new_context(viewport={"width": 1400, "height": 800}).new_page()
    page.add_init_script(QUIET)
    page.goto(f"{mlflow.url}/#/experiments")
    page.get_by_role("link", name=f"{EXPERIMENT}-pages").click()
    page.wait_for_url("**/experiments/*/**")
    home = f"{mlflow.url}/#/experiments/{page.url.partition('/experiments/')[2].partition('/')[0]}"

    _open(page, f"{home}/prompts/tipbench-tip")
    expect(page.get_by_text("@ v2-mentor").first).to_be_visible(timeout=30_000)
    _picture(page, folder, "prompts")
    _open(page, f"{home}/datasets")
    page.get_by_text(f"{EXPERIMENT}-pages scenarios").click(timeout=30_000)
    expect(page.get_by_text("electrician").first).to_be_visible(timeout=30_000)
    _picture(page, folder, "dataset")
    page.set_viewport_size({"width": 2200, "height": 800})  # scores are columns at the right
    _open(page, f"{home}/evaluation-runs")
    page.locator("a", has_text="electrician").first.click(timeout=30_000)
    expect(page.get_by_text("tr-").first).to_be_visible(timeout=30_000)
    _picture(page, folder, "evaluation")
    page.set_viewport_size({"width": 1400, "height": 800})
    _open(page, f"{home}/traces")
    page.get_by_role("button", name="Got it").click(timeout=30_000)
    page.get_by_text(re.compile("^(Marek|Samir|Dolores)")).first.click(timeout=30_000)
    expect(page.get_by_text("generate").first).to_be_visible(timeout=30_000)
    page.get_by_role("button", name="Assess").click()
    expect(page.get_by_text("relevance").first).to_be_visible(timeout=30_000)
    _picture(page, folder, "trace")


def _open(page: Page, url: str) -> None:
    """Load a page of MLflow's anew: going from one to another before the first has loaded breaks both."""
    page.goto("about:blank")
    page.goto(url)


def _picture(page: Page, folder: str | None, name: str) -> None:
    if folder:
        page.wait_for_timeout(1_500)  # panes slide in
        page.screenshot(path=Path(folder) / f"mlflow-{name}.png")
