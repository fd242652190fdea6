"""Everybody is led to where they can do something, and told what is wrong."""

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import Response

from tests.bench.compare.html.parsed import parsed
from tests.server.ui.made_panel import ADMIN, CSRF, JUDGE, Arrived
from tests.server.ui.visits import Guest, by_id, links, visit
from tipbench.server.ui import urls
from tipbench.server.ui.entrance import render_error, render_login
from tipbench.web.tokens import Visitor


@pytest.mark.parametrize(("visitor", "place"), [(ADMIN, "/experiments"), (JUDGE, "/judging")])
def test_the_first_page_is_where_the_visitor_works(visitor: Visitor, place: str) -> None:
    answer = visit(visitor=visitor).get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, place)


def test_every_page_leads_to_the_terms() -> None:
    assert urls.TERMS in links(parsed(visit().get("/judges").text))
    page = parsed(visit().get(urls.TERMS).text)
    assert [node.words for node in page.all("h2")] == ["The bench", "The recommender"]
    for term in ("cell", "anchor", "offset", "κ", "provisional", "on hold (quarantine)"):
        assert term in [node.words for node in page.all("td")], term


def showing(visitor: Visitor | None) -> Guest:
    app = FastAPI()

    @app.get("/login")
    def login(request: Request, next: str = "/jobs", problem: str = "") -> Response:
        return render_login(request, next, problem)

    @app.get("/error")
    def error(request: Request, status: int, message: str) -> Response:
        return render_error(request, status, message, ["n_tips: <b>", "models: names nothing"])

    app.add_middleware(Arrived, visitor=visitor)
    return Guest(app)


def test_the_login_page_asks_for_a_token_and_says_where_it_comes_from() -> None:
    page = parsed(showing(None).get("/login", params={"next": '/jobs?a="1"'}).text)
    fields = {node.attributes["name"]: node.attributes for node in page.all("input")}
    assert fields["token"]["type"] == "password"
    assert fields["next"]["value"] == '/jobs?a="1"'
    assert "tipbench serve --new-token" in page.words
    assert not list(page.all("nav"))  # there is nowhere to go yet


def test_a_refused_token_is_said_aloud() -> None:
    answer = showing(None).get("/login", params={"problem": "This is not <the> token."})
    assert answer.status_code == 401
    assert by_id(parsed(answer.text), "problem").words == "This is not <the> token."


@pytest.mark.parametrize(
    ("status", "title"), [(404, "Not found"), (422, "Invalid request"), (500, "Something went wrong")]
)
def test_an_error_has_its_title_its_message_and_all_problems(status: int, title: str) -> None:
    answer = showing(ADMIN).get("/error", params={"status": status, "message": "there is no job <x>"})
    page = parsed(answer.text)
    assert answer.status_code == status
    assert [node.words for node in page.all("h1")] == [title]
    assert "There is no job <x>" in page.words
    (main,) = page.all("main")
    assert [node.words for node in main.all("li")] == ["n_tips: <b>", "models: names nothing"]
    assert links(main) == ["/"]
    (leave,) = [node for node in page.all("input") if node.attributes.get("name") == "csrf"]
    assert leave.attributes["value"] == CSRF  # so that whoever is in can log out from here
