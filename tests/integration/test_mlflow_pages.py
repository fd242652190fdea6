"""MLflow's own pages below /mlflow: its real server behind ours, in a browser, beside writers, and killed."""

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest
from playwright.sync_api import ConsoleMessage

from tests.bench.tracking.store_contract import a_draft
from tests.browser import opened_browser
from tests.integration.served_pages import mlflow_servers, served, wait_until
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.new_database import NewDatabase
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings
from tipbench.server.mlflow_pages.pages import MlflowPages

BROWSER = {"Accept": "text/html"}
API = "/api/2.0/mlflow"
HOSTILE = """<html><body><script>parent.document.title = "taken over"; top.taken = 1; window.taken = 1</script>
<img src=x onerror="top.taken = 1"></body></html>"""


class Site(NamedTuple):
    url: str
    address: str
    run: StoredRun
    experiment: Experiment
    pages: MlflowPages
    first: httpx.Response  # what a browser got that came first


@pytest.fixture(scope="module")
def database(empty_databases: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "mlflow.db"
    NewDatabase(path, path.parent / "mlflow-artifacts", empty_databases).finish()
    return path


@pytest.fixture(scope="module")
def site(database: Path) -> Iterator[Site]:
    """A database with a run that has hostile files, and MLflow's pages of it on a port."""
    address = f"sqlite:///{database}"
    store = RunStore(EmbeddedMlflow(address))
    experiment = store.ensure_experiment("tip-bench-pages", {})
    names = ("page.html", "drawing.svg", "code.js", "note.md")
    store.write_run(experiment, a_draft(texts={"raw.txt": "What the model said.", **dict.fromkeys(names, HOSTILE)}))
    [run] = store.runs(experiment, {})
    store.close()
    environment = {**os.environ, "MLFLOW_TRACKING_PASSWORD": "a-secret", "MLFLOW_SERVER_ALLOWED_HOSTS": "nobody"}
    pages = MlflowPages(address, database.parent / "state", Settings(environment))
    with served(pages) as url:
        first = httpx.get(f"{url}/", headers=BROWSER)
        yield Site(url, address, run, experiment, pages, first)
    assert mlflow_servers() == [], "it ends with ours"


@pytest.fixture
def http(site: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, timeout=60) as client:
        yield client


def test_a_browser_that_comes_first_is_told_and_sent_again(site: Site, http: httpx.Client) -> None:
    assert (site.first.status_code, site.first.headers["refresh"]) == (503, "2")
    assert site.first.text.startswith("MLflow's pages are starting")
    page = wait_until(lambda: (got := http.get("/", headers=BROWSER)).status_code == 200 and got)
    assert 'src="static-files/static/js/main' in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")


def test_a_script_waits_until_it_is_answered(site: Site, http: httpx.Client) -> None:
    found = http.get(f"{API}/experiments/get-by-name", params={"experiment_name": "tip-bench-pages"})
    assert found.json()["experiment"]["experiment_id"] == site.experiment.id
    runs = http.post("/ajax-api/2.0/mlflow/runs/search", json={"experiment_ids": [site.experiment.id]}).json()["runs"]
    assert [run["info"]["run_id"] for run in runs] == [site.run.run_id]


def test_its_server_is_on_a_socket_that_only_we_reach_and_knows_no_secret(site: Site, http: httpx.Client) -> None:
    http.get("/health")
    [server] = mlflow_servers()
    socket = Path(server.cmdline()[-1])
    assert socket.is_socket()
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert [c for c in server.net_connections() if c.status == psutil.CONN_LISTEN] == [], "no port"
    assert "a-secret" not in "".join(server.environ().values())


def test_where_a_browser_comes_from_is_not_told_to_mlflow(site: Site, http: httpx.Client) -> None:
    """Both would be refused by its own checks: ours, which know better, come before it."""
    told = {"Host": "tips.example", "Origin": "https://tips.example", "Cookie": "session=x"}
    answer = http.post(f"{API}/runs/search", json={"experiment_ids": [site.experiment.id]}, headers=told)
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("name", ["page.html", "drawing.svg", "code.js", "note.md", "raw.txt"])
def test_what_a_model_wrote_is_never_a_page_of_ours(site: Site, http: httpx.Client, name: str) -> None:
    answer = http.get("/get-artifact", params={"path": name, "run_uuid": site.run.run_id})
    assert answer.text == ("What the model said." if name == "raw.txt" else HOSTILE)
    assert answer.headers["content-type"].partition(";")[0] in ("text/plain", "application/octet-stream")
    assert answer.headers["content-disposition"] == f"attachment; filename={name}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"].endswith("; sandbox")


def test_what_mlflow_can_do_beyond_showing_runs_is_closed(site: Site, http: httpx.Client) -> None:
    evil = http.post(f"{API}/experiments/create", json={"name": "evil", "artifact_location": "/etc"})
    assert evil.status_code == 403
    assert http.get("/ajax-api/3.0/mlflow/assistant/config").status_code == 403
    encoded = httpx.URL(f"{site.url}/static-files/%2e%2e/ajax-api/3.0/mlflow/assistant/config")
    assert http.get(encoded).status_code == 403


def test_writers_and_mlflows_pages_share_the_file(site: Site, http: httpx.Client) -> None:
    """Also while somebody writes for longer than the 5 s after which SQLite's Python module gives up."""
    http.get("/health")
    wrote = threading.Event()
    problems: list[str] = []
    statuses: Counter[int] = Counter()

    def hold_the_file() -> None:
        with closing(sqlite3.connect(site.address.removeprefix("sqlite:///"), timeout=60)) as transaction:
            transaction.execute("BEGIN IMMEDIATE")
            wrote.set()
            threading.Event().wait(5.5)
            transaction.rollback()

    def write_runs() -> None:
        store = RunStore(EmbeddedMlflow(site.address))
        experiment = store.ensure_experiment("tip-bench-beside", {})
        for _ in range(10):
            store.write_runs(experiment, [a_draft() for _ in range(32)])
        store.close()

    def use_the_pages(name: str) -> None:
        tags = [{"run_id": site.run.run_id, "key": f"{name}{number}", "value": "v"} for number in range(10)]
        for call, body in (("create", {"experiment_id": site.experiment.id}), *(("set-tag", tag) for tag in tags)):
            answer = http.post(f"{API}/runs/{call}", json=body)
            statuses[answer.status_code] += 1
            if answer.status_code != 200:
                problems.append(answer.text)

    holder = threading.Thread(target=hold_the_file)
    holder.start()
    wrote.wait()
    threads = [threading.Thread(target=write_runs) for _ in range(2)]
    threads += [threading.Thread(target=use_the_pages, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in (holder, *threads):
        thread.join()
    assert problems == []
    assert statuses == {200: 44}
    store = RunStore(EmbeddedMlflow(site.address))
    assert len(store.runs(store.experiment("tip-bench-beside"), {})) == 640
    [run] = [run for run in store.runs(site.experiment, {}) if run.run_id == site.run.run_id]
    assert run.tags["d9"] == "v"
    store.close()


def test_in_a_browser_mlflow_shows_the_run_and_nothing_hostile_runs(site: Site, http: httpx.Client) -> None:
    http.get("/health")
    said: list[str] = []
    asked: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            said.append(message.text)

    with opened_browser() as browser:
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", note)
        page.goto(site.url + "/#/experiments")
        page.get_by_role("link", name="tip-bench-pages").first.wait_for()
        page.goto(f"{site.url.removesuffix('/mlflow')}{site.pages.run_path(site.experiment.id, site.run.run_id)}")
        page.get_by_text("model × v1 × maya-morning").first.wait_for()
        page.get_by_text("generate_s").first.wait_for()
        page.get_by_role("tab", name="Artifacts").click()
        page.get_by_text("raw.txt").first.click()
        page.get_by_text("What the model said.").wait_for()
        assert said == [], "its pages need no more than the policy gives"
        with page.expect_response(lambda response: "page.html" in response.url):
            page.get_by_text("page.html").first.click()
        page.locator("iframe").wait_for(state="attached")
        assert page.evaluate("window.taken") is None
        assert "taken over" not in page.title()
    assert ["Framing 'blob:" in line for line in said] == [True]
    assert [url for url in asked if not url.startswith((site.url, "data:", "blob:"))] == []


def test_a_server_that_was_killed_is_started_again(site: Site, http: httpx.Client) -> None:
    http.get("/health")
    [server] = mlflow_servers()
    socket = Path(server.cmdline()[-1])
    server.kill()
    answers = []

    def is_back() -> bool:
        answers.append(http.get(f"{API}/experiments/get?experiment_id=0"))
        return answers[-1].status_code == 200

    wait_until(is_back)
    assert {answer.status_code for answer in answers} <= {200, 502, 503}
    assert [process.pid for process in mlflow_servers()] != [server.pid]
    assert not socket.parent.exists()
