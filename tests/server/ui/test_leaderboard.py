"""The panel's leaderboard is the report's, with ways to the runs, and can be taken away as files."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.bench.compare.html.boards import batch, grid, provisional
from tests.bench.compare.html.parsed import Node, parsed
from tests.server.ui.made_panel import MadeBoards, MadeRunner, MadeTokens, cells_of
from tests.server.ui.visits import Guest, by_id, links, page_at, visit
from tests.server.views.served_rows import candidate_of, cells, serve
from tipbench.core.errors import NotFound
from tipbench.server.jobs.progress import Progress
from tipbench.server.ui import urls
from tipbench.server.views.judging import OpenBatch

NAMES = [
    "tip-bench-2026-04-27", "a/b", "../..", "/", "a?b#c", "a b+c%2Fd%", "\"quoted\" 'twice' & <b>", "ünïcode ✓", "x=y",
]  # fmt: skip


def sections(page: Node) -> dict[str, str]:
    found = {node.attributes.get("id") or "answer": node.words for node in page.all("section")}
    return {name: text.replace("( ", "(") for name, text in found.items()}


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_can_be_reached_whatever_it_is_called(name: str) -> None:
    client = visit(boards=MadeBoards({name: cells_of()}))
    table = by_id(page_at(client, "/experiments"), "experiments-table")
    page = page_at(client, links(table)[0])
    assert [node.text for node in page.all("h1")] == [name]
    (runs,) = [link for link in links(page) if link == urls.runs(name)]
    runs_page = page_at(client, runs)
    run_link = links(next(runs_page.all("table")))[0]
    assert "2 candidates" in page_at(client, run_link).words
    for link in links(page):
        if "download" in [a for n in page.all("a") if n.attributes.get("href") == link for a in n.attributes]:
            answer = client.get(link)
            assert answer.status_code == 200
            assert answer.headers["content-disposition"].startswith("attachment; filename=")
            assert answer.headers["content-disposition"].isascii()
    judge = (
        next(node for node in page.all("a") if re.fullmatch(r"Judge \d+ cells?", node.words)).attributes["href"] or ""
    )
    assert urlsplit(judge).path == "/judging"
    assert parse_qs(urlsplit(judge).query) == {"experiment": [name]}


def test_it_has_everything_of_the_report() -> None:
    client = visit(boards=MadeBoards({"e": cells_of()}))
    shown = sections(page_at(client, urls.leaderboard("e")))
    written = sections(parsed(client.get(urls.with_query(urls.REPORT, experiment="e")).text))
    assert list(shown) == list(written)
    assert [name for name in shown if shown[name] != written[name]] == ["texts"]  # here with filters and links
    assert list(shown) == [
        "answer",
        "leaderboard",
        "texts",
        "figures",
        "judges",
        "grid",
        "effects",
        "slices",
        "cost",
        "reading",
    ]


def test_rows_lead_to_their_runs_and_the_file_has_no_such_links() -> None:
    client = visit(boards=MadeBoards({"e": cells_of()}))
    (table,) = page_at(client, urls.leaderboard("e")).all("table", "board")
    for link in links(table):
        page = page_at(client, link)
        wanted = {key: values[0] for key, values in parse_qs(urlsplit(link).query).items()}
        rows = [row.words for row in next(page.all("tbody")).all("th")]
        assert rows
        assert all(row.startswith(f"{wanted['model']} {wanted['prompt']} ×") for row in rows)
    report = parsed(client.get(urls.with_query(urls.REPORT, experiment="e")).text)
    assert all(link.startswith("#") for link in links(report))


def test_what_waits_for_a_judge_is_said_and_leads_there() -> None:
    full = grid(["m"], ["v1"])
    by_rule = [
        provisional(replace(one, pending=True, metrics={}, judged_rubric=None, judged_by=None), 6) for one in full
    ]
    client = visit(boards=MadeBoards({"part": cells_of(), "rule": by_rule, "full": full}))
    assert "Judge 2 cells" in page_at(client, urls.leaderboard("part")).words
    rules = page_at(client, urls.leaderboard("rule")).words
    assert "Judge 5 cells" in rules
    assert "scores come from simple rules, which don't count" in rules
    page = page_at(client, urls.leaderboard("full"))
    assert not re.search(r"Judge \d+ cell", page.words)


def test_an_experiment_without_cells_says_so() -> None:
    assert (
        "The experiment holds no cells yet."
        in page_at(visit(boards=MadeBoards({"e": []})), urls.leaderboard("e")).words
    )


def test_the_files_hold_the_board() -> None:
    boards = MadeBoards({"e": cells_of()})
    client = visit(boards=boards)
    best = boards.leaderboard("e").rows[0]
    data = json.loads(client.get(urls.with_query(urls.JSON, experiment="e")).text)
    assert data["standings"][0]["model"] == best.model
    rows = list(csv.DictReader(io.StringIO(client.get(urls.with_query(urls.CSV, experiment="e")).text)))
    assert rows[0]["model"] == best.model
    assert len(rows) == 4


def test_what_users_did_stands_below_once_something_was_served(tmp_path: Path) -> None:
    made = cells(["<b>one</b>", "two"])
    one, two = (next(cell for cell in made if cell.model == name) for name in ("<b>one</b>", "two"))
    boards = MadeBoards({"e": made}, served=tmp_path / "decisions")
    client = visit(boards=boards)
    (place,) = [node for node in page_at(client, urls.leaderboard("e")).all("div") if "hx-get" in node.attributes]
    below = place.attributes["hx-get"] or ""
    assert client.get(below).text.strip() == ""
    serve(tmp_path, ("u1", candidate_of(two), 1.0), ("u2", candidate_of(two), -0.5), ("u3", candidate_of(one), None))
    shown = page_at(client, below)
    assert [node.words for node in shown.all("h2")] == ["What users did with them"]
    rows = [[*row.all("th"), *row.all("td")] for body in shown.all("tbody") for row in body.all("tr")]
    assert [row[0].words for row in rows] == ["<b>one</b> v1", "two v1"]
    assert "0.25" in rows[1][6].words
    assert rows[1][7].words == "50 %"
    assert "too few" in rows[1][8].words
    assert page_at(client, links(shown)[1]).words.count("two") > 1
    assert "A policy chose what to show" in shown.words


class Accepting:
    """A desk that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def accept(self, batch: str, by: str, why: str) -> None:
        self.told.append((batch, by, why))


def test_a_batch_in_quarantine_is_let_count_with_a_reason() -> None:
    boards, desk = MadeBoards({"e": cells_of()}), Accepting()
    boards.batches = [batch("in quarantine", "tone: too mild", "lena"), batch("counts", "", "mira")]
    client = visit(boards=boards, desk=desk)
    page = page_at(client, urls.leaderboard("e"))
    (form,) = [node for node in page.all("form") if node.attributes.get("hx-post") == urls.ACCEPT]
    sent = {node.attributes["name"]: node.attributes.get("value") or "" for node in form.all("input")}
    assert sent == {"experiment": "e", "batch": "batch-1", "why": ""}
    assert "One batch judged by lena is on hold. Its 40 scores don’t count." in page.words

    refused = client.post(urls.ACCEPT, data={**sent, "why": "  "})
    assert (refused.status_code, desk.told) == (422, [])
    assert "give one" in refused.text

    done = client.post(urls.ACCEPT, data={**sent, "why": " the anchors are too strict "})
    assert (done.status_code, done.headers["hx-redirect"]) == (204, urls.leaderboard("e"))
    assert desk.told == [("batch-1", "person", "the anchors are too strict")]


class Asked:
    """A desk that has a batch for lena alone."""

    def next_batch(self, judge: str, experiment: str | None = None) -> OpenBatch | None:
        if experiment != "e":
            raise NotFound(f"there is no experiment '{experiment}' here")
        return OpenBatch("b1", 40, 0, 0) if judge == "lena" else None


def test_a_judge_is_asked_for_a_second_opinion() -> None:
    client = visit(boards=MadeBoards({"e": cells_of()}), desk=Asked(), tokens=MadeTokens("lena", "jon"))
    page = page_at(client, urls.leaderboard("e"))
    assert [node.attributes["value"] for node in by_id(page, "ask-judge").all("option")] == ["lena", "jon"]
    assert "40 items wait for lena now." in client.post(urls.ASK, data={"experiment": "e", "judge": "lena"}).text
    assert "Nothing" in client.post(urls.ASK, data={"experiment": "e", "judge": "jon"}).text
    assert client.post(urls.ASK, data={"experiment": "e", "judge": "nobody"}).status_code == 422
    assert client.post(urls.ASK, data={"experiment": "x", "judge": "lena"}).status_code == 422


def test_without_invited_judges_nobody_can_be_asked() -> None:
    page = page_at(visit(boards=MadeBoards({"e": cells_of()})), urls.leaderboard("e"))
    assert not [node for node in page.all("select") if node.attributes["id"] == "ask-judge"]


def texts_at(client: Guest, status: int = 200, **wanted: str | int) -> Node:
    return page_at(client, urls.texts("e", **wanted), status)


def scenarios_of(page: Node) -> list[str]:
    return [next(fold.all("h4")).words for fold in page.all("details", "scenario-texts")]


def test_texts_are_filtered_by_a_plain_form_whose_address_can_be_shared() -> None:
    client = visit(boards=MadeBoards({"e": cells_of()}))
    form, *_ = [
        node
        for node in page_at(client, urls.leaderboard("e")).all("form")
        if node.attributes.get("action") == urls.TEXTS
    ]
    assert form.attributes["method"] == "get"
    names = [node.attributes["name"] for tag in ("input", "select") for node in form.all(tag)]
    assert set(names) == {"experiment", "scenario", "model", "prompt", "score_from", "score_to"}
    page = texts_at(client, scenario="s2", model="gemma3:1b", score_to="9")
    assert scenarios_of(page) == ["s2"]
    rows = [node.words for node in page.all("th") if node.attributes["scope"] == "row"]
    assert [row.split()[0] for row in rows] == ["gemma3:1b"] * len(rows)
    chosen = [node.attributes["value"] for node in page.all("option") if "selected" in node.attributes]
    assert chosen == ["s2", "gemma3:1b"]
    scores = [float(node.words) for node in page.all("span", "score")]
    assert scores
    assert max(scores) <= 9
    assert {urlsplit(next(card.all("a")).attributes["href"] or "").path for card in page.all("article")} == {urls.RUN}


def test_two_variants_are_compared_side_by_side() -> None:
    client = visit(boards=MadeBoards({"e": cells_of()}))
    page = texts_at(client, a="qwen2.5:0.5b × v1", b="gemma3:1b × v1")
    first = next(page.all("details", "scenario-texts"))
    assert re.search(r"× v1 is \d+\.\d\d points ahead", next(first.all("span", "says")).words)
    table = next(first.all("table"))
    assert [node.words.split()[0] for node in table.all("th") if node.attributes["scope"] == "col"] == [
        "qwen2.5:0.5b", "gemma3:1b",
    ]  # fmt: skip
    assert next(table.all("tfoot")).words.startswith("first minus second composite ")


def test_more_texts_come_without_the_page_around_them() -> None:
    made = grid([f"m{n}" for n in range(5)], ["v1", "v2"], 4)
    client = visit(boards=MadeBoards({"e": made}))
    page = page_at(client, urls.leaderboard("e"))
    (more,) = [node for node in page.all("a") if node.words == "Show more"]
    assert more.attributes["href"] == more.attributes["hx-get"] == urls.texts("e", offset=20)
    part = parsed(client.get(urls.texts("e", offset=20), headers={"HX-Request": "true"}).text)
    assert not list(part.all("html"))
    assert len(scenarios_of(part)) == 2
    assert not set(scenarios_of(part)) & set(scenarios_of(page))
    assert "Show more" not in part.words
    assert list(page_at(client, more.attributes["href"] or "").all("html"))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"scenario": "<b>nowhere"}, "This experiment has no scenario '<b>nowhere'; choose one from the list."),
        ({"score_from": "9", "score_to": "4"}, "No score can be from 9 to 4; swap the two."),
        ({"score_from": "much"}, "'much' is no score; give a number."),
        ({"score_to": "nan"}, "'nan' is no score; give a number."),
        ({"a": "qwen2.5:0.5b × v1"}, "It takes two variants to compare; choose the other one, too."),
    ],
)
def test_a_filter_that_makes_no_sense_is_answered_with_a_sentence_and_the_form(
    wanted: dict[str, str], said: str
) -> None:
    page = texts_at(visit(boards=MadeBoards({"e": cells_of()})), 422, **wanted)
    assert next(page.all("p", "alert")).words == said
    sent = [node.attributes.get("value") for tag in ("input", "option") for node in page.all(tag)]
    assert set(wanted.values()) <= set(sent)


def test_where_there_is_nothing_to_show_the_page_leads_on() -> None:
    waiting = [replace(one, pending=True, metrics={}, judged_rubric=None, judges=()) for one in grid(["m"], ["v1"])]
    client = visit(boards=MadeBoards({"e": waiting}))
    page = texts_at(client)
    assert "Nothing is scored yet" in page.words
    assert "comes first" not in page.words
    assert urls.judging("e") in links(page)
    nothing = texts_at(client, score_from="1")
    assert "No text matches." in nothing.words
    assert urls.texts("e") in links(nothing)
    assert "There are no texts yet." in texts_at(visit(boards=MadeBoards({"e": []}))).words


def test_an_experiment_is_published_by_a_click() -> None:
    runner = MadeRunner()
    client = visit(boards=MadeBoards({"tip-bench-x": cells_of()}), runner=runner)
    assert "Publish to MLflow" in page_at(client, urls.leaderboard("tip-bench-x")).words
    done = client.post(urls.PUBLISH, data={"experiment": "tip-bench-x"})
    assert (done.status_code, done.headers["HX-Redirect"]) == (204, urls.job("publishing"))
    runner.told["publishing"] = Progress("publish", cells=96, done=40)
    assert "40 of 96 cells published." in page_at(client, urls.job("publishing")).words
    again = client.post(f"{urls.job('publishing')}/again")
    assert (again.status_code, again.headers["HX-Redirect"]) == (204, urls.job("publishing"))
    refused = client.post(urls.PUBLISH, data={"experiment": "nothing"})
    assert (refused.status_code, "there is no experiment" in refused.text) == (422, True)


def test_an_automatic_judge_is_run_by_a_click() -> None:
    runner = MadeRunner()
    client = visit(boards=MadeBoards({"tip-bench-x": cells_of()}), runner=runner)
    page = page_at(client, urls.leaderboard("tip-bench-x"))
    assert "Which judge should score what is pending" in page.words
    assert "lexical (rules; provisional)" in page.words
    done = client.post(urls.RUN_JUDGE, data={"experiment": "tip-bench-x", "judge": "command"})
    assert (done.status_code, done.headers["HX-Redirect"]) == (204, urls.job("judging"))
    assert runner.found["judging"].is_judging
    refused = client.post(urls.RUN_JUDGE, data={"experiment": "tip-bench-x", "judge": "nobody"})
    assert (refused.status_code, "there is no judge" in refused.text) == (422, True)
    again = client.post(f"{urls.job('judging')}/again")
    assert (again.status_code, runner.started) == (204, []), "it judges again, and collects nothing"
