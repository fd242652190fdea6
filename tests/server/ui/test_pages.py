"""What holds for every page: nothing that others wrote is markup, nothing runs inline, everything can be named."""

import json
import re
import tempfile
from functools import cache

import pytest

from tests.bench.compare.html.parsed import Node, parsed
from tests.bench.compare.html.test_page import NASTY, UNSEEN
from tests.server.ui.made_decision import MadeDecisions, a_round
from tests.server.ui.made_panel import (
    CSRF,
    JUDGE,
    MadeBoards,
    MadeRequests,
    MadeRunner,
    MadeTokens,
    a_job,
    a_progress,
    cells_of,
    parts_of,
)
from tests.server.ui.visits import links, page_at, structure, visit
from tests.server.views.made_recommender import (
    GATE,
    MadeSimulations,
    a_gate,
    a_replay,
    a_signal,
    a_simulation,
    an_outcome,
    made_room,
    signal,
)
from tipbench.core.settings import Settings
from tipbench.server.jobs.progress import Progress
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts
from tipbench.server.views.recommender import RecommenderViews

LONG = "x" * 1_000_000
SAME_LENGTH = 40  # a page may treat a long name in another way


def panel_with(text: str) -> Parts:
    """Whatever others can write, and every name that somebody gave, is this text."""
    boards = MadeBoards({text: cells_of(text)}, text, raw=text)
    boards.problem = text
    runner = MadeRunner(
        {"run": a_job("run", text=text), "end": a_job("end", "finished", text)},
        {"run": a_progress(text), "end": a_progress(text, phase="done", waiting_items=3)},
        text,
    )
    return parts_of(
        boards=boards,
        runner=runner,
        requests=MadeRequests(text),
        decisions=MadeDecisions(
            text, a_round(text, judge=text), a_job("run", text=text), a_progress(text), MadeRequests(text)
        ),
        tokens=MadeTokens(text),
        recommender=room_with(text),
        address=text,
    )


def room_with(text: str) -> RecommenderViews:
    """In a home of its own: a gate, a shadow and two simulations, one of them at work."""
    settings = Settings({"TIPBENCH_HOME": tempfile.mkdtemp(dir=Settings().home)})
    ended, going = a_simulation("end", "finished", message=text), a_simulation("run", "running", GATE, message=text)
    told = {"run": Progress("simulate", text, cells=9, done=3, eta_s=5.0), "end": Progress("done", text)}
    runner = MadeSimulations({"end": ended, "run": going}, told, {"end": an_outcome(text)}, text)
    a_gate(settings.home, text=text)
    a_replay(settings.home, text=text)
    signal(settings.home, a_signal(shadow=text))
    return made_room(runner, settings)


def record_pages(parts: Parts) -> list[str]:
    """Of the one gate and the one replay, whose ids depend on what is in them."""
    room = parts.recommender
    return [
        *(urls.gate(line.id) for line in room.gates.lines()),
        *(urls.replay(line.id) for line in room.replays.lines()),
    ]


def pages_with(text: str) -> list[str]:
    judged, *_, broken, _, _ = cells_of(text)
    return [
        "/experiments",
        "/experiments/jobs",
        "/jobs",
        "/jobs/run",
        "/jobs/run/live",
        "/jobs/end",
        "/runs/new",
        "/runs/models?ollama_url=http://elsewhere",
        "/judges",
        urls.leaderboard(text),
        urls.decision(text),
        urls.with_query(urls.DECISION_LIVE, experiment=text),
        urls.NEW_DECISION,
        urls.runs(text),
        urls.runs(text, model=text, state="pending"),
        urls.run(text, judged.run_id),
        urls.run(text, broken.run_id),
        "/recommender",
        "/recommender/simulations",
        "/recommender/simulations/end",
        "/recommender/simulations/end?show=lost",
        "/recommender/simulations/run",
        "/recommender/simulations/run/live",
        "/recommender/gates",
        "/recommender/replays",
        "/recommender/shadows",
        "/recommender/promotions",
    ]


def structures(text: str) -> list[list[tuple[str, tuple[str, ...]]]]:
    parts = panel_with(text)
    client = visit(parts)
    return [structure(page_at(client, url)) for url in (*pages_with(text), *record_pages(parts))]


@cache
def harmless() -> list[list[tuple[str, tuple[str, ...]]]]:
    return structures("x" * SAME_LENGTH)


@pytest.mark.parametrize("text", [text.ljust(SAME_LENGTH, "x") for text in NASTY if "\ud800" not in text])
def test_what_others_wrote_is_shown_and_is_never_markup(text: str) -> None:
    assert structures(text) == harmless()


def test_what_would_hide_or_reorder_text_is_made_visible() -> None:
    client = visit(panel_with("a\u202egnorw\u202c \x1b[31mred\x07"))
    for url in pages_with("a\u202egnorw\u202c \x1b[31mred\x07"):
        written = client.get(url).text
        seen = re.sub(r'value="[^"]*"', "", written)  # what a form sends back stays as it is
        assert not UNSEEN.search(seen.replace("\n", "").replace("\t", "")), url
        assert "\\u202e" in written


def test_a_name_that_no_encoding_holds_breaks_no_page() -> None:
    client = visit(boards=MadeBoards({"\ud800": cells_of("\ud800")}))
    assert "\\ud800" in client.get("/experiments").text


def test_a_megabyte_of_text_stays_a_small_page() -> None:
    boards = MadeBoards({"e": cells_of()}, LONG, raw=LONG)
    client = visit(boards=boards)
    answer = client.get(urls.run("e", cells_of()[0].run_id))
    assert answer.status_code == 200
    assert len(answer.text) < 100_000
    assert f"{1_000_000 - 4_000:,} more not shown" in answer.text


ALL = pages_with("tip-bench-x")


@pytest.mark.parametrize("url", ALL)
def test_nothing_is_inline_and_links_stay_here(url: str) -> None:
    page = page_at(visit(panel_with("tip-bench-x")), url)
    names = {name for node in page.all() for name in node.attributes}
    assert not [name for name in names if name.startswith(("on", "hx-on", "hx-vars"))]
    assert "style" not in names
    assert not list(page.all("style"))
    assert [node.text for node in page.all("script") if node.text.strip()] == []
    assert not [node for node in page.all() if "[" in (node.attributes.get("hx-trigger") or "")]
    for link in links(page):
        assert re.match(r"/(?!/)|#", link), link


@pytest.mark.parametrize("url", ALL)
def test_everything_can_be_used_without_eyes(url: str) -> None:
    page = page_at(visit(panel_with("tip-bench-x")), url)
    named = {node.attributes.get("for") for node in page.all("label")}
    inside = [field for label in page.all("label") for field in label.all()]
    for field in [*page.all("input"), *page.all("select")]:
        hidden = field.attributes.get("type") == "hidden"
        assert hidden or field.attributes.get("id") in named or any(field is one for one in inside), field
    for node in [*page.all("button"), *page.all("a"), *page.all("summary"), *page.all("legend")]:
        assert node.words or node.attributes.get("aria-label"), node
    assert {node.attributes.get("scope") for node in page.all("th")} <= {"row", "col", "rowgroup"}
    ids = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in page.all():
        for name in ("aria-labelledby", "aria-describedby"):
            if name in node.attributes:
                assert node.attributes[name] in ids
    assert [heading.words for heading in page.all("h1")] != [""]


def test_htmx_is_set_up_to_run_no_code_and_to_show_refusals() -> None:
    page = page_at(visit(), "/experiments")
    meta = {node.attributes.get("name"): node.attributes.get("content") or "" for node in page.all("meta")}
    assert meta["csrf-token"] == CSRF
    config = json.loads(meta["htmx-config"])
    assert config["allowEval"] is False
    assert config["includeIndicatorStyles"] is False
    assert config["selfRequestsOnly"] is True
    handled = [one for one in config["responseHandling"] if re.fullmatch(one["code"], "422")]
    assert handled[0]["swap"] is True
    assert not handled[0].get("error")


def test_a_judge_is_shown_the_way_to_judging_alone() -> None:
    def ways(page: Node) -> list[str]:
        (bar,) = page.all("nav")
        return links(bar)

    assert ways(page_at(visit(), "/jobs"))[0] == "/experiments"
    assert ways(page_at(visit(visitor=JUDGE), "/jobs")) == ["/judging"]


def test_the_page_one_is_on_is_marked() -> None:
    client = visit(panel_with("x"))
    for url, name in (("/jobs/run", "Jobs"), (urls.leaderboard("x"), "Experiments"), ("/judges", "Judges")):
        marked = [node.words for node in page_at(client, url).all("a") if "aria-current" in node.attributes]
        assert marked == [name]


def test_a_part_of_a_page_is_whole() -> None:
    client = visit(panel_with("x"))
    for url in ("/experiments/jobs", "/jobs/run/live", "/runs/new"):
        assert "<html" not in client.get(url).text
        assert list(parsed(client.get(url).text).all())
