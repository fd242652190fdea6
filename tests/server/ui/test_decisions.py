"""The pages of a decision: its form, where it stands, stopping it and going on."""

from tests.server.ui.made_decision import MadeDecisions, a_round, stopped_round
from tests.server.ui.made_panel import MadeRequests, a_job, a_progress
from tests.server.ui.visits import by_id, links, page_at, visit
from tipbench.server.ui import urls
from tipbench.server.views.decisions import DecisionRules

NAME = "tip-pool-made"


def test_the_answer_comes_first_then_rows_with_their_accounts() -> None:
    page = page_at(visit(), urls.decision(NAME))
    live = by_id(page, "decision-live").words
    assert live.startswith(
        "Undecided: 2 of 3 rows may be the best. qwen2.5:0.5b × v1 leads; picking it now is expected"
    )
    assert "Next: judge the next batch" in live
    assert "smollm2 × v1 4.54 8 out after 8 items" in live
    assert "gemma3:1b × v1" in live
    assert "of a budget of 200" in live
    assert urls.leaderboard(NAME) in links(page)


def test_a_poll_brings_only_what_has_changed() -> None:
    decisions = MadeDecisions()
    client = visit(decisions=decisions)
    seen = decisions.get(NAME).digest
    assert client.get(urls.with_query(urls.DECISION_LIVE, experiment=NAME, seen=seen)).status_code == 204
    decisions.found = a_round(items=12)
    changed = client.get(urls.with_query(urls.DECISION_LIVE, experiment=NAME, seen=seen))
    assert changed.status_code == 200
    assert "of 40 scenarios count so far" in changed.text


def test_it_says_what_is_generated_now_and_why_nothing_is() -> None:
    working = MadeDecisions(job=a_job(), progress=a_progress())
    assert "20 of 36 cells generated" in page_at(visit(decisions=working), urls.decision(NAME)).words
    broken = MadeDecisions(job=a_job(state="failed", text="no model answers"))
    page = page_at(visit(decisions=broken), urls.decision(NAME))
    assert "The next answers could not be generated. no model answers" in page.words
    assert "Try again" in page.words


def test_stopping_says_what_it_costs_and_is_taken_back_by_going_on() -> None:
    decisions = MadeDecisions()
    client = visit(decisions=decisions)
    assert "You take qwen2.5:0.5b × v1. That is expected to lose about" in page_at(client, urls.decision(NAME)).words
    done = client.post(urls.STOP_DECISION, data={"experiment": NAME})
    assert (done.status_code, done.headers["HX-Redirect"]) == (204, urls.decision(NAME))
    decisions.found = stopped_round()
    page = page_at(client, urls.decision(NAME)).words
    assert "lena stopped it; take qwen2.5:0.5b × v1, or go on with more" in page
    assert "Stop now" not in page
    assert client.post(urls.CONTINUE_DECISION, data={"experiment": NAME, "budget": "400"}).status_code == 204
    refused = client.post(urls.CONTINUE_DECISION, data={"experiment": NAME, "budget": "3"})
    assert (refused.status_code, "budget: is too small" in refused.text) == (422, True)
    assert decisions.asked == [
        ("stop", (NAME, "person")),
        ("go on", (NAME, DecisionRules(budget=400))),
        ("go on", (NAME, DecisionRules(budget=3))),
    ]


def test_the_form_starts_what_it_shows() -> None:
    decisions = MadeDecisions(requests=MadeRequests())
    client = visit(decisions=decisions)
    form = page_at(client, urls.NEW_DECISION)
    assert "n_scenarios" not in form.words
    sent = {"models": "gemma3:1b", "prompts": ["v1", "v2-mentor"], "good_enough": "0", "claim": "new", "n_tips": "3"}
    done = client.post(urls.DECISION, data={**sent, "suite": "tip-pool"})
    assert (done.status_code, done.headers["HX-Redirect"]) == (204, urls.decision(NAME))
    given, rules = decisions.asked[-1][1]
    assert (given["models"], given["prompts"], given["n_tips"]) == ("gemma3:1b", "v1,v2-mentor", 3)
    assert rules == DecisionRules("new", 0.0, None)


def test_every_problem_of_a_form_is_told() -> None:
    client = visit(decisions=MadeDecisions(requests=MadeRequests()))
    wrong = client.post(urls.DECISION, data={"good_enough": "little", "budget": "many"})
    assert wrong.status_code == 422
    assert "good_enough: must be a number of points" in wrong.text
    assert "budget: must be a whole number of judgements" in wrong.text
    assert "models: is empty" in client.post(urls.DECISION, data={"prompts": "v1"}).text


def test_a_restart_is_said() -> None:
    page = page_at(visit(decisions=MadeDecisions(found=a_round(restarts=1))), urls.decision(NAME)).words
    assert "started over and have to grow to 40" in page
