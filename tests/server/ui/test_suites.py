"""The pages of suites: everything in a suite is shown as text, and proposals are accepted one by one."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.compare.html.parsed import parsed
from tests.server.ui.visits import Guest, by_id, links, page_at, structure, visit
from tests.server.views.test_suites import COMMITS, Faithful
from tipbench.core.settings import Settings
from tipbench.server.views.store_provider import StoreProvider
from tipbench.server.views.suites import Suites

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[StoreProvider]:
    address = f"sqlite:///{tmp_path / 'm.db'}"
    stores = StoreProvider(address, Settings(), lambda: 1_777_300_000.0, iter(f"{n:016x}" for n in range(99)).__next__)
    yield stores
    stores.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(COMMITS, tmp_path / "commits"))


@pytest.fixture
def client(stores: StoreProvider) -> Guest:
    return visit(suites=Suites(stores))


def registered(client: Guest, folder: Path) -> None:
    answer = client.post("/suites", data={"folder": f" {folder} "})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/suites/suite?suite=commits")


def test_a_folder_is_registered_and_unregistered(client: Guest, folder: Path) -> None:
    refused = client.post("/suites", data={"folder": str(folder / "prompts")})
    assert refused.status_code == 422
    assert "The suite was not registered" in parsed(refused.text).words
    assert "suite.yaml: the file is missing" in parsed(refused.text).words
    registered(client, folder)
    assert "/suites/suite?suite=commits" in links(page_at(client, "/suites"))
    (folder / "scenarios.yaml").write_text("[]")
    page = page_at(client, "/suites")
    assert "It can’t be used: scenarios.yaml:1: there is no scenario" in page.words
    assert "/suites/suite?suite=commits" not in links(page)
    gone = client.post("/suites/unregister", data={"name": "commits"})
    assert (gone.status_code, gone.headers["HX-Redirect"]) == (204, "/suites")
    assert "commits" not in page_at(client, "/suites").words.replace("/srv/suites/commits", "")
    assert client.post("/suites/unregister", data={"name": "commits"}).status_code == 422


def test_a_suites_page_shows_all_of_it(client: Guest, folder: Path) -> None:
    registered(client, folder)
    page = page_at(client, "/suites/suite?suite=commits")
    for part in (
        "nobody checks its judges", "It names something that the change does not do.", "truth 1–3 2",
        "Does the message say what the change does?", "overlong by code -1", "{{ scenario }}", "kind: chore",
        "the last page of the export raised IndexError", "added: Use the imperative mood",
    ):  # fmt: skip
        assert part in page.words
    same = page_at(client, "/suites/suite?suite=commits&one=v1&other=v1&more=x")
    assert "added: " not in same.words
    odd = page_at(client, "/suites/suite?suite=commits&one=none&other=v2-imperative")
    assert "added: " in odd.words


def test_nothing_in_a_suite_is_markup(client: Guest, folder: Path) -> None:
    registered(client, folder)
    before = structure(page_at(client, "/suites/suite?suite=commits"))
    for name, old in (
        ("rubric.md", "It names something"), ("rubric.md", "Does the message"), ("prompts/v1.md", "Write"),
        ("prompts/v1.md", "The task"), ("suite.yaml", "Commit messages"), ("scenarios.yaml", "the last page"),
    ):  # fmt: skip
        path = folder / name
        path.write_text(path.read_text().replace(old, f"{HOSTILE} {old}"))
    page = page_at(client, "/suites/suite?suite=commits")
    assert page.words.count("<script>alert(1)</script>") >= 6
    assert structure(page).count(("script", ("src", "defer"))) == before.count(("script", ("src", "defer")))
    assert not list(page.all("img"))


def test_anchors_are_proposed_and_accepted_one_by_one(client: Guest, folder: Path, stores: StoreProvider) -> None:
    from tipbench.bench.bench import Bench

    registered(client, folder)
    with Bench("commits-1", suite=str(folder), mlflow_url=stores.address) as bench:
        bench.collect(models="scripted/a")
        bench.judge(Faithful("lena"))
        bench.judge(Faithful("tom"))
    page = page_at(client, "/suites/anchors?suite=commits&experiment=commits-1")
    assert "by lena, tom" in page.words
    anchors = [node.attributes["value"] for node in page.all("input") if node.attributes.get("name") == "anchor"]
    sent = {"suite": "commits", "experiment": "commits-1", "anchor": anchors[0], "tolerance": "0"}
    accepted = parsed(client.post("/suites/anchors/accept", data=sent).text)
    assert by_id(accepted, "anchors-now").words == "The suite has 1 anchor."
    refused = client.post("/suites/anchors/accept", data={**sent, "anchor": "made-up"})
    assert (refused.status_code, "not proposed any more" in refused.text) == (422, True)
    page = page_at(client, "/suites/suite?suite=commits")
    assert "made by lena, tom, whom it does not check" in page.words
