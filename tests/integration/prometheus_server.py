"""Prometheus and promtool from Debian's packages, and a Prometheus that does in seconds what takes a real one hours."""

import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.debian_packages import PackageUnavailable, find_program
from tests.integration.deployed import DASHBOARD, DEPLOY, Command, free_port
from tests.integration.serving import until

TOKEN_FILE = "/etc/prometheus/tipbench-token"  # as prometheus.yml names it
_SHORTER = 2400
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LEAST_S, _LEAST_RANGE_S = 1.0, 5.0  # a range has to hold some samples


def prometheus_program(name: str) -> Path:
    """Return `prometheus` or `promtool`; skip the test if it can't be had."""
    try:
        return find_program("prometheus", name)
    except PackageUnavailable as error:
        pytest.skip(str(error))


def promtool(*words: str | Path) -> str:
    """Run promtool, which must succeed; return what it prints."""
    done = subprocess.run([prometheus_program("promtool"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def shortened(text: str) -> str:
    """Return rules or a configuration with every duration divided by 2400: six hours are nine seconds.

    No duration becomes shorter than a second, and no range than five. Nothing else is changed.
    """

    def shorter(found: re.Match[str]) -> str:
        least = _LEAST_RANGE_S if found[1] == "[" else _LEAST_S
        return f"{found[1]}{max(least, int(found[2]) * _SECONDS[found[3]] / _SHORTER) * 1000:.0f}ms"

    return re.sub(r"(\[|(?<= ))(\d+)([smhd])\b", shorter, text)


class PrometheusServer:
    """A running Prometheus with the files of `deploy/prometheus`, shortened."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._begun_s = time.time()

    @classmethod
    @contextmanager
    def running(cls, folder: Path, token: str, moved: Mapping[str, str]) -> Iterator["PrometheusServer"]:
        """Start it in this folder; `moved` has other addresses for those in the configuration."""
        (folder / "token").write_text(token)
        for name in ("prometheus.yml", "alerts.yml"):
            text = shortened((DEPLOY / "prometheus" / name).read_text(encoding="utf-8"))
            for old, new in {**moved, TOKEN_FILE: f"{folder}/token"}.items():
                text = text.replace(old, new)
            (folder / name).write_text(text, encoding="utf-8")
        address = f"127.0.0.1:{free_port()}"
        flags = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
        command = Command((str(prometheus_program("prometheus")), *flags, f"--web.listen-address={address}"), {})
        with (
            command.running(folder / "prometheus.log"),
            httpx.Client(base_url=f"http://{address}", trust_env=False, timeout=30) as client,
        ):
            until(lambda: _is_ready(client))
            yield cls(client)

    def query(self, expression: str) -> list[dict[str, Any]]:
        return self._result("query", query=expression)

    def values_since_start(self, expression: str) -> list[dict[str, Any]]:
        """Return what a graph of the expression would show."""
        return self._result("query_range", query=expression, start=self._begun_s, end=time.time(), step=1)

    def alerts(self) -> set[str]:
        """Return the names of all alerts that there are rules for."""
        rules = [rule for group in self._get("rules")["groups"] for rule in group["rules"]]
        return {rule["name"] for rule in rules if rule["type"] == "alerting"}

    def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that fire."""
        return [alert for alert in self._get("alerts")["alerts"] if alert["state"] == "firing"]

    def _result(self, path: str, **parameters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(path, **parameters)["result"]
        return found

    def _get(self, path: str, **parameters: Any) -> dict[str, Any]:
        answer = self._client.get(f"/api/v1/{path}", params=parameters)
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").status_code == 200
    except httpx.TransportError:
        return False


def dashboard_queries() -> list[tuple[str, str]]:
    """Return the title of each panel with each of its expressions, as Grafana would send them."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    queries = [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", ())]
    return [(title, query.replace("$__rate_interval", "5s")) for title, query in queries]
