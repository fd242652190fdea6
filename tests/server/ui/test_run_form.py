"""The dialog offers what can be run, tells what it would take, and refuses with every problem at once."""

from urllib.parse import urlencode

import pytest

from tests.bench.compare.html.parsed import Node, parsed
from tests.server.ui.made_panel import MadeRequests, MadeRunner
from tests.server.ui.visits import Guest, by_id, page_at, visit
from tipbench.bench.options import Options, option_fields
from tipbench.core.errors import EngineUnreachable, Problems, TrackingUnreachable
from tipbench.server.ui.run_form import Problem, problems_of
from tipbench.server.views.run_requests import Choices

Sent = list[tuple[str, str]]


def sent_by(page: Node) -> Sent:
    """What a browser would send of the form as it is."""
    found = []
    for node in by_id(page, "run-form").all():
        name = node.attributes.get("name")
        if node.tag == "select":
            (chosen,) = [one for one in node.all("option") if "selected" in one.attributes]
            found.append((name or "", chosen.attributes["value"] or ""))
        elif node.tag == "input" and (node.attributes.get("type") != "checkbox" or "checked" in node.attributes):
            found.append((name or "", node.attributes.get("value") or ""))
    return found


def post(client: Guest, url: str, sent: Sent) -> tuple[int, Node, dict[str, str]]:
    answer = client.post(url, content=urlencode(sent), headers={"Content-Type": "application/x-www-form-urlencoded"})
    return answer.status_code, parsed(answer.text), dict(answer.headers)


def changed(sent: Sent, **values: str) -> Sent:
    return [(key, values.get(key, value)) for key, value in sent]


def test_the_form_as_it_comes_starts_the_run_that_it_shows() -> None:
    runner = MadeRunner()
    client = visit(runner=runner)
    status, _, headers = post(client, "/runs", sent_by(page_at(client, "/runs/new")))
    assert (status, headers["hx-redirect"]) == (204, "/jobs/job0")
    ((options, retry_failed, fresh),) = runner.started
    assert options == Options(
        models="qwen2.5:0.5b,gemma3:1b", prompts="v1,v2-mentor", experiment="tip-bench-2026-04-27"
    )
    assert (retry_failed, fresh) == (False, False)


def test_every_option_is_in_the_form_but_where_the_results_go() -> None:
    page = page_at(visit(), "/runs/new")
    names = {node.attributes.get("name") for node in page.all()} - {None}
    assert names == {field.key for field in option_fields()} - {"mlflow_url"} | {"more_models", "retry_failed", "fresh"}
    for field in option_fields():
        if field.key not in ("models", "prompts", "suite", "mlflow_url", "judge"):  # whose help is about flags
            assert field.help.rstrip(".") in page.words


def test_what_is_filled_in_arrives_by_its_type() -> None:
    runner = MadeRunner()
    client = visit(runner=runner)
    sent = changed(
        sent_by(page_at(client, "/runs/new")),
        n_tips="3", temperature="1", max_tokens=" 90 ", unload="model", judge="lexical", more_models="openai/a, b",
    )  # fmt: skip
    status, page, _ = post(client, "/runs", [*sent, ("diversity", "true"), ("retry_failed", "true"), ("fresh", "true")])
    assert status == 204, page.words
    ((options, retry_failed, fresh),) = runner.started
    assert (options.n_tips, options.temperature, options.max_tokens) == (3, 1.0, 90)
    assert (options.unload, options.judge, options.diversity) == ("model", "lexical", True)
    assert options.model_names == ("qwen2.5:0.5b", "gemma3:1b", "openai/a", "b")
    assert (retry_failed, fresh) == (True, True)


def test_a_run_that_cant_be_is_refused_with_all_problems_beside_their_fields() -> None:
    runner = MadeRunner()
    client = visit(runner=runner)
    sent = changed(sent_by(page_at(client, "/runs/new")), n_tips="many", experiment="", ollama_url="<b>")
    sent = [(key, value) for key, value in sent if key != "prompts"] + [("n_tip", "1")]
    status, page, _ = post(client, "/runs", sent)
    assert status == 422
    assert runner.started == []
    told = [node.words for node in page.all("li")]
    assert "The run was not started: 5 problems." in page.words
    assert "n_tips: input should be a valid integer (given: 'many')" in told
    assert "prompts: is empty; give at least one (given: '')" in told
    assert "n_tip: unknown key; did you mean n_tips?" in told
    fields = {node.attributes["data-field"] or "" for node in page.all("a")}
    assert fields == {"field-n_tips", "field-n_tip", "field-prompts", "field-experiment", "field-ollama_url"}
    form = page_at(client, "/runs/new")
    assert {by_id(form, name).tag for name in fields - {"field-n_tip"}} == {"input", "fieldset"}
    assert by_id(form, "run-problems").attributes["role"] == "alert"


def test_an_engine_that_is_away_is_told_in_the_dialog() -> None:
    class Away(MadeRequests):
        def validate(self, given: object) -> Options:
            raise EngineUnreachable("Ollama at http://localhost:11434 does not answer; start it")

    client = visit(requests=Away())
    sent = sent_by(page_at(client, "/runs/new"))
    status, page, _ = post(client, "/runs", sent)
    assert status == 422
    assert "Ollama at http://localhost:11434 does not answer" in page.words
    assert "Can’t run yet: Ollama at" in post(client, "/runs/estimate", sent)[1].words


def test_where_nothing_can_be_chosen_the_dialog_says_why() -> None:
    class Away(MadeRequests):
        def choices(
            self, ollama_url: str | None = None, suite_name: str | None = None, with_models: bool = True
        ) -> Choices:
            raise TrackingUnreachable("nothing answers at <http://far>")

    client = visit(requests=Away())
    assert "can’t be loaded: 1 problem. nothing answers at <http://far>" in page_at(client, "/runs/new", 422).words
    assert "nothing answers" in page_at(client, "/runs/models", 422).words


def test_the_estimate_tells_cells_and_time_or_what_is_wrong() -> None:
    client = visit()
    sent = sent_by(page_at(client, "/runs/new"))
    status, page, _ = post(client, "/runs/estimate", sent)
    assert (status, page.words) == (
        200,
        "48 cells, 12 stored already; 36 to generate: about 4 min 10 s (from earlier cells of these models).",
    )
    status, page, _ = post(client, "/runs/estimate", changed(sent, n_tips="0"))
    assert status == 200
    assert "Can’t run yet: n_tips: input should be greater than or equal to 1" in page.words


def test_models_come_with_their_sizes_and_those_too_large_are_marked() -> None:
    page = by_id(page_at(visit(), "/runs/new"), "run-models")
    told = [node.words for node in page.all("label")]
    assert told[0] == "qwen2.5:0.5b 494 M · 398 MB · Q4_K_M"
    assert told[2] == "llama3.1:8b 8.0 B · 4.9 GB · Q4_K_M over 4 B"
    assert "nothing answers at this address" in page.words
    checked = [node.attributes["value"] for node in page.all("input") if "checked" in node.attributes]
    assert checked == ["qwen2.5:0.5b", "gemma3:1b"]


def test_another_ollama_has_other_models_and_ticks_stay() -> None:
    requests = MadeRequests()
    page = page_at(visit(requests=requests), "/runs/models?ollama_url=http://far:1&models=llama3.1:8b")
    assert requests.asked == ["http://far:1"]
    assert "http://far:1" in page.words
    checked = [node.attributes["value"] for node in page.all("input") if "checked" in node.attributes]
    assert checked == ["llama3.1:8b"]


@pytest.mark.parametrize(
    ("text", "field"), [("n_tips: too many", "n_tips"), ("Ollama at http://x: no", ""), ("nothing", "")]
)
def test_a_problem_names_its_field_where_it_has_one(text: str, field: str) -> None:
    assert problems_of(EngineUnreachable(text)) == [Problem(field, text)]


def test_another_suite_brings_its_prompts_and_its_defaults_and_asks_no_engine() -> None:
    requests = MadeRequests()
    answer = visit(requests=requests).get("/runs/suite?suite=commits")
    page = parsed(answer.text)
    assert "Prompts of the suite commits, which has 8 scenarios" in by_id(page, "field-prompts").words
    fields = [node.attributes for node in page.all("input")]
    swapped = {field["id"]: field["value"] for field in fields if "hx-swap-oob" in field}
    assert swapped == {"field-n_tips": "5", "field-experiment": "tip-bench-2026-04-27"}
    assert answer.headers["HX-Trigger-After-Settle"] == "suite-changed"


def test_a_suite_that_cant_be_used_says_why_where_its_prompts_would_be() -> None:
    class Broken(MadeRequests):
        def choices(
            self, ollama_url: str | None = None, suite_name: str | None = None, with_models: bool = True
        ) -> Choices:
            raise Problems("the suite in <b> can't be used:", ["rubric.md: the file is missing"])

    page = page_at(visit(requests=Broken()), "/runs/suite?suite=commits")
    assert "This suite can’t be used: 1 problem. rubric.md: the file is missing" in by_id(page, "field-prompts").words
