"""Runs can be found page by page, and one shows all that is known of it."""

from dataclasses import replace

import pytest

from tests.bench.compare.html.boards import cell, empty
from tests.server.ui.made_panel import MadeBoards, cells_of
from tests.server.ui.visits import by_id, links, page_at, visit
from tipbench.core.errors import InvalidInput
from tipbench.server.ui import urls
from tipbench.server.views.boards import RunDetail

MANY = [cell("m", "v1", f"s{number:03}") for number in range(120)]


def test_pages_of_fifty_lead_to_each_other_and_keep_the_filter() -> None:
    client = visit(boards=MadeBoards({"a/b": MANY}))
    url: str | None = urls.runs("a/b", model="m")
    seen: list[str] = []
    told = []
    while url:
        page = page_at(client, url)
        seen += links(next(page.all("table")))
        pager = next(page.all("nav", "pager"))
        told.append(pager.words)
        following = [node.attributes["href"] for node in pager.all("a") if node.attributes.get("rel") == "next"]
        url = following[0] if following else None
        chosen = [one.words for one in by_id(page, "by-model").all("option") if "selected" in one.attributes]
        assert chosen == ["m"]
    assert seen == [urls.run("a/b", one.run_id) for one in MANY]
    assert told == ["1–50 of 120 Next", "Previous 51–100 of 120 Next", "Previous 101–120 of 120"]


def test_the_filter_is_a_form_that_needs_no_script() -> None:
    client = visit(boards=MadeBoards({"a b": cells_of()}))
    page = page_at(client, urls.runs("a b"))
    (form,) = page.all("form", "filters")
    assert (form.attributes["method"], form.attributes["action"]) == ("get", urls.RUNS)
    fields = {node.attributes["name"] for node in form.all() if "name" in node.attributes}
    assert fields == {"experiment", "model", "prompt", "scenario", "state"}
    answer = client.get(
        urls.RUNS, params={"experiment": "a b", "model": "", "prompt": "", "scenario": "", "state": "failed"}
    )
    assert answer.text.count("state-failed") == 1


def test_what_no_run_has_is_still_what_was_asked_for() -> None:
    page = page_at(visit(boards=MadeBoards({"e": cells_of()})), urls.runs("e", model="gone"))
    assert "No run matches." in page.words
    chosen = [one.words for one in by_id(page, "by-model").all("option") if "selected" in one.attributes]
    assert chosen == ["gone"]


def test_an_experiment_without_runs_says_what_to_do() -> None:
    assert "Run Collection makes some" in page_at(visit(boards=MadeBoards({"e": []})), urls.runs("e")).words


@pytest.mark.parametrize("offset", ["-1", "x", "1" * 30])
def test_a_page_that_cant_be_is_refused(offset: str) -> None:
    assert visit(boards=MadeBoards({"e": MANY})).get(urls.runs("e", offset=offset)).status_code == 422


def test_a_run_shows_texts_scores_settings_and_times() -> None:
    boards = MadeBoards({"e": cells_of()}, raw="the raw answer")
    page = page_at(visit(boards=boards), urls.run("e", cells_of()[0].run_id))
    assert [node.words for node in page.all("h1")] == ["qwen2.5:0.5b v1 × s0"]
    first, second = page.all("li", "candidate-card")
    assert first.words.startswith("Ring the dentist before nine, while the line is free.")
    assert "mira 12.00 4 5 no" in first.words
    assert "lexical does not count 12.00 4 5 no" in first.words
    assert "mira noted: Ring the dentist" in first.words
    assert "Not scored." in second.words
    for told in ("the raw answer", "Mara, nurse, morning.", "You write tips.", "temperature 0.7", "gen/generate_s 5"):
        assert told in page.words
    assert "/mlflow/#/experiments/7/runs/qwen2.5:0.5b/v1/s0" in links(page)


def test_a_failed_run_says_why_and_has_no_answer() -> None:
    broken = cells_of()[-3]
    client = visit(boards=MadeBoards({"e": cells_of()}))
    page = page_at(client, urls.run("e", broken.run_id))
    assert "Why it failed timed out" in page.words
    assert "Raw answer" not in page.words
    with pytest.raises(InvalidInput, match="has no answer: it failed"):
        client.get(urls.answer("e", broken.run_id))


def test_a_pending_run_leads_to_judging_and_an_empty_one_says_that_there_is_nothing_to_judge() -> None:
    waits, nothing = cell(), replace(empty(cell("n")), candidates=0)

    class Boards(MadeBoards):
        def run(self, experiment: str, run_id: str) -> RunDetail:
            found = super().run(experiment, run_id)
            return replace(found, candidates=[]) if found.cell.is_empty else found

    client = visit(boards=Boards({"e": [waits, nothing]}, raw=""))
    assert urls.judging("e") in links(page_at(client, urls.run("e", waits.run_id)))
    page = page_at(client, urls.run("e", nothing.run_id))
    assert "Nothing usable could be read from the answer" in page.words
    assert "The answer was empty." in page.words
    assert urls.judging("e") not in links(page)


def test_a_long_answer_is_cut_and_can_be_had_whole_as_a_file() -> None:
    raw = "<script>alert(1)</script>\x1b[31m \ud800" + "x" * 10_000
    client = visit(boards=MadeBoards({"e": cells_of()}, raw=raw))
    page = page_at(client, urls.run("e", cells_of()[0].run_id))
    assert f"{len(raw) - 4_000:,} more not shown. The full text" in page.words
    (link,) = [one for one in links(page) if one.startswith(urls.ANSWER)]
    answer = client.get(link)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="answer-qwen2.5-0.5b-v1-s0.txt"'
    assert answer.text == raw.replace("\ud800", "\\ud800")
