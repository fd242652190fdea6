"""Judges are invited by name; their token is shown once, and can be taken back."""

from tests.bench.compare.html.parsed import parsed
from tests.server.ui.made_panel import MadeTokens
from tests.server.ui.visits import by_id, page_at, visit


def test_nobody_is_there_and_it_says_what_to_do() -> None:
    page = page_at(visit(), "/judges")
    assert "Nobody is invited yet. Enter a name above" in page.words


def test_an_invitation_has_all_that_the_judge_needs_and_is_shown_once() -> None:
    tokens = MadeTokens("jon")
    client = visit(tokens=tokens)
    answer = client.post("/judges", data={"name": " mira "})
    page = parsed(answer.text)
    assert answer.status_code == 200
    invitation = by_id(page, "invitation").text
    assert "Token: token-of-2" in invitation
    assert "Open http://panel.test/login" in invitation
    assert by_id(page, "judge-list").attributes["hx-swap-oob"] == "true"
    assert [node.words for node in by_id(page, "judge-list").all("th") if node.attributes["scope"] == "row"] == [
        "jon",
        "mira",
    ]
    assert "token-of-2" not in client.get("/judges").text


def test_a_name_that_cant_be_is_refused_aloud() -> None:
    answer = visit(tokens=MadeTokens("mira")).post("/judges", data={"name": "mira"})
    assert answer.status_code == 422
    (told,) = parsed(answer.text).all("p")
    assert (told.attributes["role"], told.words) == ("alert", "'mira' is no name for a judge; take another")


def test_revoking_asks_first_and_takes_the_judge_off_the_list() -> None:
    tokens = MadeTokens('"jon" & <co>', "mira")
    client = visit(tokens=tokens)
    question, _ = page_at(client, "/judges").all("details", "confirm")
    (field,) = question.all("input")
    answer = client.post("/judges/revoke", data={"name": field.attributes["value"] or ""})
    assert answer.status_code == 200
    assert tokens.names == ["mira"]
    assert "jon" not in answer.text
    assert client.post("/judges/revoke", data={"name": "nobody"}).status_code == 422
