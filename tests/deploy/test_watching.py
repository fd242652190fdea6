"""Alerts and dashboard are complete: each alert says what to do, has a section in the docs, and a test of its own."""

import json
import re
from itertools import combinations
from typing import Any

import yaml

from tests.integration.deployed import DASHBOARD, DEPLOY, ROOT

FILES = DEPLOY / "prometheus"


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((FILES / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def test_each_alert_says_what_it_means_and_leads_to_its_section_of_the_docs() -> None:
    docs = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    for alert in alerts():
        assert set(alert["annotations"]) == {"summary", "description", "runbook"}
        assert alert["annotations"]["runbook"] == f"docs/production.md#{alert['alert'].lower()}"
        assert f"\n#### {alert['alert']}\n" in docs
        assert f"\n| [{alert['alert']}](#{alert['alert'].lower()}) |" in docs
        assert alert["labels"]["severity"] in ("critical", "warning")


def test_each_alert_fires_in_a_test_of_its_own() -> None:
    tests = [one for path in FILES.glob("*.test.yml") for one in yaml.safe_load(path.read_text())["tests"]]
    expected = {one["name"].split()[0]: str(one["promql_expr_test"]) for one in tests}
    for alert in alerts():
        name = alert["alert"]
        assert f'ALERTS{{alertname="{name}", alertstate="firing"' in expected[name]


def test_alerts_name_panels_that_there_are() -> None:
    named = {title for alert in alerts() for title in re.findall('"(.*?)"', alert["annotations"]["description"])}
    assert len(named) > 3
    assert named <= {panel["title"] for panel in panels()}


def test_panels_have_names_and_places_of_their_own() -> None:
    for what in ("id", "title"):
        assert len({panel[what] for panel in panels()}) == len(panels())
    places = [_places(panel["gridPos"]) for panel in panels()]
    assert all(one.isdisjoint(other) for one, other in combinations(places, 2))
    assert max(x for taken in places for x, _ in taken) == 23


def _places(grid: dict[str, int]) -> set[tuple[int, int]]:
    columns, rows = (range(grid[at], grid[at] + grid[size]) for at, size in (("x", "w"), ("y", "h")))
    return {(x, y) for x in columns for y in rows}
