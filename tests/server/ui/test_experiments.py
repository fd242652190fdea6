"""The list says what is there and what is under way; without anything, what to do first."""

from dataclasses import replace

from tests.bench.compare.html.parsed import parsed
from tests.server.ui.made_panel import MadeBoards, MadeRunner, a_job, a_progress, cells_of
from tests.server.ui.visits import by_id, links, page_at, visit
from tipbench.server.ui import urls


def test_without_experiments_it_says_how_to_make_one() -> None:
    page = page_at(visit(), "/experiments")
    assert "No experiments yet. Press Run Collection to make the first one" in page.words
    assert [node.words for node in page.all("button", "primary")] == ["Run Collection"]


def test_every_experiment_has_its_counts_and_ways_further() -> None:
    page = page_at(visit(boards=MadeBoards({"tip-bench-a": cells_of(), "empty": []})), "/experiments")
    table = by_id(page, "experiments-table")
    rows = [[cell.words for cell in row.all() if cell.tag in ("td", "th")] for row in table.all("tr")][1:]
    assert rows[0][3:] == ["20", "17", "2", "1"]
    assert rows[1][3:] == ["0", "0", "0", "0"]
    assert set(links(table)) >= {
        urls.leaderboard("tip-bench-a"),
        urls.runs("tip-bench-a"),
        urls.judging("tip-bench-a"),
        urls.runs("tip-bench-a", state="failed"),
    }
    bar = next(table.all("svg"))
    assert bar.attributes["aria-label"] == "17 judged, 2 pending, 1 failed"
    assert [rect.attributes["width"] for rect in bar.all("rect")] == ["85.00", "10.00", "5.00"]


def test_each_line_asks_for_its_answer_once_it_is_seen() -> None:
    client = visit(boards=MadeBoards({"a & b": cells_of(), "empty": []}))
    (line,) = [node for node in page_at(client, "/experiments").all("span") if "hx-get" in node.attributes]
    assert line.attributes["hx-trigger"] == "revealed"
    answer = parsed(client.get(line.attributes["hx-get"] or "").text)
    said = MadeBoards({"a & b": cells_of()}).leaderboard("a & b").answer.says
    assert answer.words.startswith(said[:200])


def test_an_experiment_that_cant_be_read_says_why() -> None:
    boards = MadeBoards({"a": cells_of()})
    boards.problem = "run 7 was stored with schema '9'"
    assert "can’t be read: run 7 was stored with schema '9'" in page_at(visit(boards=boards), "/experiments").words


def test_jobs_under_way_are_on_top_the_first_one_first() -> None:
    waits = replace(a_job("late", "queued"), created_ms=10**13, message="Waits for another run.")
    runner = MadeRunner({"late": waits, "j1": a_job(), "over": a_job("over", "finished")}, {"j1": a_progress()})
    page = page_at(visit(runner=runner), "/experiments")
    first, second = by_id(page, "active-jobs").all("li")
    assert (
        "Collecting: 20 of 36 cells generated, 1 failed; 12 were stored already. About 2 min 10 s left." in first.words
    )
    assert [(bar.attributes["value"], bar.attributes["max"]) for bar in first.all("progress")] == [("20", "36")]
    assert "Queued: Waits for another run." in second.words


def test_asking_again_brings_only_what_has_changed() -> None:
    runner = MadeRunner({"j1": a_job()}, {"j1": a_progress()})
    client = visit(runner=runner, boards=MadeBoards({"a": cells_of()}))
    asked = by_id(page_at(client, "/experiments"), "active-jobs").attributes["hx-get"] or ""
    assert client.get(asked).status_code == 204

    runner.told["j1"] = a_progress(done=21)
    page = page_at(client, asked)
    assert "21 of 36 cells" in page.words
    assert "experiments-table" not in [node.attributes.get("id") for node in page.all()]

    runner.found["j1"] = a_job(state="finished")
    page = parsed(client.get(asked).text)
    assert by_id(page, "experiments-table").attributes["hx-swap-oob"] == "true"
    assert not list(by_id(page, "active-jobs").all("li"))


def test_while_the_place_where_runs_happen_is_away_the_list_is_there() -> None:
    runner = MadeRunner(away="the runner at http://h:1 is away")
    client = visit(runner=runner, boards=MadeBoards({"tip-bench-a": cells_of()}))
    page = page_at(client, "/experiments")
    assert "Running jobs can’t be listed: the runner at http://h:1 is away" in page.words
    assert "tip-bench-a" in by_id(page, "experiments-table").words
    asked = by_id(page, "active-jobs").attributes["hx-get"] or ""
    assert client.get(asked).status_code == 204
    runner.away = ""
    assert client.get(asked).status_code == 200
