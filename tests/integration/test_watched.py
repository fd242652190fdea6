"""A real Prometheus scrapes both real servers, and each alert fires once its fault is made.

The rules are those of `deploy/prometheus`, with hours that take seconds. promtool tests them as they are, and that they
keep quiet otherwise: test_watching_files.py.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from tests.integration.collecting import collect_slowly, started, wait_for_some_runs
from tests.integration.command import tipbench
from tests.integration.mlflow_server import MlflowServer
from tests.integration.prometheus_server import PrometheusServer, dashboard_queries
from tests.integration.recommending import recommending
from tests.integration.serving import serving, until
from tipbench.recommender.store.locks import StoreLocks

TOKEN = "a-metrics-token-for-tests-only"
SHADOW = "egreedy-v2-shadow"
HELD, LEFT = "tip-bench-held", "tip-bench-left"
FAULTS = {  # alerts, and what they must name
    "TipbenchDown": {"job": "tipbench-recommend"},
    "TipbenchErrors": {"server": "serve"},
    "TipbenchSlow": {"route": "/score/egreedy/v2"},
    "TipbenchStoreErrors": {"store": "mlflow", "job": "tipbench-serve"},
    "TipbenchDeliveryBacklog": {"job": "tipbench-serve"},
    "TipbenchJudgeOnHold": {"experiment": HELD},
    "TipbenchRewardDrop": {"policy": "egreedy"},
    "TipbenchRewardsMissing": {"policy": "linucb"},
    "TipbenchShadowDisagreement": {"shadow": SHADOW},
}
ON_A_BUSY_MACHINE = {"TipbenchDown", "TipbenchSlow"}  # where a scrape may take more than a second
HISTORY = " and ".join(  # enough for the recommender's alerts to compare with
    f"sum(increase({name}[1m])) > {least}"
    for name, least in (
        ('tipbench_rewarded_total{policy="egreedy"}', 150),
        ('tipbench_rewarded_total{policy="linucb"}', 150),
        ('tipbench_shadow_choices_total{agrees="true"}', 100),
    )
)
_PAUSE_S = 0.04  # between requests of a thread: they need not take all of the machine


def test_each_alert_fires_once_its_fault_is_made(home: Path, tmp_path: Path) -> None:
    with (
        MlflowServer.start(tmp_path / "mlflow") as mlflow,  # with others' experiments, metrics would be read less often
        ExitStack() as running,
    ):
        put_a_batch_on_hold(mlflow.url, tmp_path)
        served = running.enter_context(serving(MLFLOW_TRACKING_URI=mlflow.url, TIPBENCH_METRICS_TOKEN=TOKEN))
        service = recommending("--workers", "2", "--shadow", SHADOW, TIPBENCH_METRICS_TOKEN=TOKEN)
        recommender = running.enter_context(service)
        moved = {"127.0.0.1:8765": served.url[7:], "127.0.0.1:8766": recommender.url[7:]}
        with PrometheusServer.running(tmp_path, TOKEN, moved) as prometheus:
            assert prometheus.alerts() == FAULTS.keys()
            alerts = Alerts(prometheus)
            app = App()
            with recommender.client() as client, repeating(lambda: app.ask(client), threads=2):
                until(lambda: prometheus.query(HISTORY))
                until(lambda: "TipbenchJudgeOnHold" in alerts.seen())
                assert alerts.seen().keys() <= {"TipbenchJudgeOnHold", *ON_A_BUSY_MACHINE}
                leave_cells_undelivered(mlflow, home, tmp_path)
                app.is_well = False
                with (
                    served.client() as admin,
                    repeating(lambda: ask_for_what_is_in_mlflow(admin)),
                    repeating(lambda: ask_for_a_locked_user(client, home)),
                ):
                    until(lambda: alerts.seen().keys() >= FAULTS.keys() - {"TipbenchDown"})
            for title, query in dashboard_queries():
                assert prometheus.values_since_start(query), f"{title} shows nothing: {query}"
            running.close()
            until(lambda: "TipbenchDown" in Alerts(prometheus).seen())
            assert "error expanding" not in str(alerts.seen())


class Alerts:
    """Alerts that were seen firing about what they should."""

    def __init__(self, prometheus: PrometheusServer) -> None:
        self._prometheus = prometheus
        self._seen: dict[str, dict[str, Any]] = {}

    def seen(self) -> dict[str, dict[str, Any]]:
        """Look once more, and return what each of them says by now."""
        for alert in self._prometheus.firing():
            name = alert["labels"]["alertname"]
            if FAULTS[name].items() <= alert["labels"].items():
                self._seen[name] = alert["annotations"]
        return self._seen


def put_a_batch_on_hold(url: str, folder: Path) -> None:
    """By a judge who gives everything the lowest scores, the anchors too."""
    store = ("--experiment", HELD, "--mlflow-url", url)
    file = folder / "judge.json"
    assert tipbench("collect", "--models", "scripted/a", "--prompts", "v1", *store).status == 0
    assert tipbench("judge", *store, "--export", str(file), "--sample", "3").status == 0
    batch = json.loads(file.read_text())
    for item in batch["items"]:
        item["scores"] |= {name: scale["min"] for name, scale in batch["scales"].items()}
    file.write_text(json.dumps(batch))
    assert tipbench("judge", *store, "--apply", str(file)).status == 1


def leave_cells_undelivered(mlflow: MlflowServer, home: Path, folder: Path) -> None:
    """MLflow goes away for good, and then the collection is killed."""
    collection = started(collect_slowly(folder, mlflow.url, LEFT, latency_s=0.2, repeats=10))
    wait_for_some_runs(mlflow.url, LEFT, 2)
    mlflow.stop()
    until(lambda: sum(path.read_text().count("\n") for path in (home / "journal").iterdir()) > 4)
    collection.kill()
    collection.communicate()


def ask_for_what_is_in_mlflow(admin: httpx.Client) -> None:
    assert admin.get(f"/api/bench/leaderboard/{LEFT}").status_code >= 500


def ask_for_a_locked_user(client: httpx.Client, home: Path) -> None:
    """This process has the lock of the user longer than half a second."""
    locks = StoreLocks(home / "recommender" / "state" / ".locks")
    event = f"locked-{time.monotonic_ns()}"
    with ThreadPoolExecutor(1) as other:
        with locks.user("locked"):
            body = {"user_id": "locked", "event_id": event, **asked(2)}
            answer = other.submit(client.post, "/score/egreedy/v2", json=body)
            time.sleep(0.7)
        answer.result()


class App:
    """An app that asks and rewards: users like everything, and once it is not well any more, nothing."""

    def __init__(self) -> None:
        self.is_well = True
        self._events = count()

    def ask(self, client: httpx.Client) -> None:
        number = next(self._events)
        event = {"user_id": f"u{number % 40}", "event_id": f"e{number}"}
        offered = 1 if self.is_well else 10  # so that the shadow can but agree, and then hardly does
        post(client, "/score", **event, **asked(offered))
        post(client, "/reward", **event, reward=1 if self.is_well else -1)
        post(client, "/score/linucb", **event, **asked(offered))
        if self.is_well:
            post(client, "/reward/linucb", **event, reward=1)


def asked(offered: int) -> dict[str, Any]:
    return {
        "context": {"hour": 9.5},
        "candidates": [{"id": f"t{number}", "category": "inbox"} for number in range(offered)],
    }


def post(client: httpx.Client, path: str, **body: Any) -> None:
    client.post(path, json=body).raise_for_status()


@contextmanager
def repeating(function: Callable[[], None], threads: int = 1) -> Iterator[None]:
    """Call the function again and again in threads, until the block ends or it raises; then the block raises that."""
    ended = threading.Event()
    errors: list[Exception] = []

    def repeat() -> None:
        try:
            while not ended.wait(_PAUSE_S):
                function()
        except Exception as error:  # noqa: BLE001 - raised below
            errors.append(error)

    all_threads = [threading.Thread(target=repeat) for _ in range(threads)]
    for thread in all_threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in all_threads:
            thread.join()
        assert errors == []
