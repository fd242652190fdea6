"""Simulations' pages: started by a form, live while they go, and then with what was found."""

from pathlib import Path

import pytest

from tests.bench.compare.html.parsed import parsed
from tests.server.ui.visits import Guest, by_id, links, page_at, visit
from tests.server.views.made_recommender import GATE, MadeSimulations, a_simulation, an_outcome, made_room
from tipbench.core.errors import NotFound
from tipbench.server.jobs.progress import Progress
from tipbench.server.ui import urls

GOING = Progress("simulate", cells=120, done=30, eta_s=65.0)


def visiting(runner: MadeSimulations) -> Guest:
    return visit(recommender=made_room(runner))


def running() -> tuple[MadeSimulations, Guest]:
    runner = MadeSimulations({"s1": a_simulation("s1", "running", GATE)}, {"s1": GOING}, logged="[30/120] lives\n")
    return runner, visiting(runner)


def test_one_that_runs_shows_how_far_it_is() -> None:
    _, client = running()
    page = page_at(client, urls.simulation("s1"))
    assert "Gate: egreedy/v2 against egreedy 10 lives per persona, from seed 10000 30 decisions per life" in page.words
    assert "running Simulating" in page.words
    assert "30 of 120 lives simulated. About 1 min 5 s left." in page.words
    assert [(bar.attributes["value"], bar.attributes["max"]) for bar in page.all("progress")] == [("30", "120")]
    assert "[30/120] lives" in page.words


def test_asking_again_brings_what_changed_until_the_end() -> None:
    runner, client = running()
    ask = by_id(page_at(client, urls.simulation("s1")), "job-live").attributes["hx-get"] or ""
    assert client.get(ask).status_code == 204
    runner.told["s1"] = Progress("simulate", cells=120, done=60)
    assert "60 of 120 lives simulated." in page_at(client, ask).words

    runner.found["s1"] = a_simulation("s1", "finished", GATE, exit_status=1, message="NOT PASSED")
    runner.told["s1"] = Progress("done", "NOT PASSED", cells=120, done=120, kept_as="0" * 16)
    runner.outcomes["s1"] = an_outcome()
    answer = client.get(ask)
    assert answer.status_code == 286
    page = parsed(answer.text)
    assert by_id(page, "simulation-said").words == "Finished: NOT PASSED"
    assert "hx-trigger" not in by_id(page, "job-live").attributes
    assert "not passed" in by_id(page, "job-live").words
    assert {urls.gate("0" * 16), f"{urls.simulation('s1')}/outcome.json"} <= set(links(page))
    assert len(list(page.all("svg", "curves"))) == 2
    assert list(by_id(page, "simulation-actions").all("button")) == []


def test_what_was_found_stands_in_a_table() -> None:
    runner = MadeSimulations({"s1": a_simulation("s1", "finished")}, outcomes={"s1": an_outcome()})
    page = page_at(visiting(runner), urls.simulation("s1"))
    overall, planner, chaotic = [body.words for body in page.all("tbody")]
    assert overall == "all personas egreedy 0.500 ± 0.020 15.0 3.0 40 % 20 % linucb 0.400 ± 0.020 12.0 6.0 40 % 20 %"
    assert planner.startswith("planner egreedy 0.500")
    assert chaotic.startswith("chaotic control egreedy")
    best = [node.words for node in page.all("span", "strong")]
    assert best == ["0.500", "0.500"], "nobody is better with a control"


def test_one_seed_says_nothing_about_how_far_it_may_be_off() -> None:
    runner = MadeSimulations({"s1": a_simulation("s1", "finished")}, outcomes={"s1": an_outcome(margin=None)})
    page = page_at(visiting(runner), urls.simulation("s1"))
    assert "0.500 ± ?" in page.words
    assert "over 1 seed: with one, there is none." in page.words
    assert not list(page.all("polygon"))


def test_what_the_plots_show_can_be_changed() -> None:
    runner = MadeSimulations({"s1": a_simulation("s1", "finished")}, outcomes={"s1": an_outcome()})
    client = visiting(runner)
    page = page_at(client, urls.simulation("s1"))
    ways = [link for link in links(page) if "show=" in link]
    assert len(ways) == 6
    for way in ways:
        shown = page_at(client, way)
        assert [
            node.attributes["href"] for node in shown.all("a") if node.attributes.get("aria-current") == "true"
        ] == [way]
    assert "higher is better" in page_at(client, f"{urls.simulation('s1')}?show=nonsense").words


def test_cancelling_asks_first() -> None:
    runner, client = running()
    (button,) = next(page_at(client, urls.simulation("s1")).all("details", "confirm")).all("button")
    answer = client.post(button.attributes["hx-post"] or "")
    assert "Cancelling" in answer.text
    assert runner.found["s1"].cancelling


@pytest.mark.parametrize(
    ("form", "asked"),
    [
        (
            {"kind": "gate", "candidate": "egreedy/v2", "incumbent": "", "seeds": " 12 ", "steps": ""},
            {"kind": "gate", "candidate": "egreedy/v2", "incumbent": "egreedy", "seeds": 12, "steps": 200},
        ),
        (
            {"kind": "run", "policies": ["egreedy", "linucb"], "first_seed": "7"},
            {"kind": "run", "policies": ["egreedy", "linucb"], "first_seed": 7, "seeds": 30},
        ),
    ],
)
def test_the_form_starts_one(form: dict[str, object], asked: dict[str, object], home: Path) -> None:
    runner = MadeSimulations()
    answer = visiting(runner).post(urls.SIMULATIONS, data=form)
    assert (answer.status_code, answer.headers["hx-redirect"]) == (204, urls.simulation("s0"))
    assert asked.items() <= runner.found["s0"].config.items()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"kind": "gate", "candidate": "linucb", "seeds": "many"}, "seeds: should be a whole number (given: 'many')"),
        ({"kind": "gate", "candidate": "egreedy"}, "egreedy is both candidate and incumbent; name two policies"),
        ({"kind": "run"}, "policies: should have at least 1 entry (given: 0)"),
        ({}, "kind: should be 'run' or 'gate'"),
    ],
)
def test_what_is_wrong_with_a_form_is_told(form: dict[str, str], told: str, home: Path) -> None:
    runner = MadeSimulations()
    answer = visiting(runner).post(urls.SIMULATIONS, data=form or {"x": "y"})
    assert answer.status_code == 422
    assert "It was not started: 1 problem." in parsed(answer.text).words
    assert told in parsed(answer.text).words
    assert runner.found == {}


def test_the_list_has_verdicts_and_goes_back_in_time() -> None:
    passed = a_simulation("s1", "finished", GATE, exit_status=0)
    client = visiting(MadeSimulations({"s1": passed, "s2": a_simulation("s2", "failed")}))
    words = page_at(client, urls.SIMULATIONS).words
    assert "Gate: egreedy/v2 against egreedy" in words
    assert " passed 2026-" in words
    assert "failed" in words
    assert "There are no older simulations." in page_at(client, f"{urls.SIMULATIONS}?before=1").words
    assert "No simulations yet." in page_at(visiting(MadeSimulations()), urls.SIMULATIONS).words


def test_the_outcome_can_be_kept_as_a_file() -> None:
    runner, client = running()
    with pytest.raises(NotFound):
        client.get(f"{urls.simulation('s1')}/outcome.json")
    runner.found["s1"] = a_simulation("s1", "finished")
    runner.outcomes["s1"] = an_outcome()
    answer = client.get(f"{urls.simulation('s1')}/outcome.json")
    assert answer.json() == an_outcome()
    assert "attachment" in answer.headers["content-disposition"]
