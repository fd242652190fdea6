import json
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.server.ui.asgi_client import Client
from tests.server.ui.fake_desk import FakeDesk, applied, tip_sheet
from tests.server.ui.judging_server import Session, make_app
from tipbench.server.ui.judging import approximate_duration, sizes_for
from tipbench.server.views.judging import Waiting
from tipbench.server.views.sheet import MAX_NOTE_LENGTH, Given, Sheet
from tipbench.web.tokens import Visitor

HEADERS = {"X-CSRF-Token": "token-1"}
DONE = Given(
    {"relevance": 4, "actionability": 3, "tone": 5}, {"format_ok": None, "overlong": True}, "a note", complete=True
)


def _client(desk: FakeDesk, name: str = "ada", admin: bool = False) -> Client:
    visitor = Visitor("admin" if admin else "judge", name)
    return Client(make_app(desk, Session(visitor)))


def _scored(sheet: Sheet) -> Sheet:
    return replace(sheet, items=[replace(item, given=DONE) for item in sheet.items])


def _save(client: Client, change: Any, slot: str = "slot0000") -> int:
    return client.patch(f"/judging/b1/items/{slot}", json=change, headers=HEADERS).status_code


def test_nothing_waits() -> None:
    assert "Nothing waits for a judge" in _client(FakeDesk()).get("/judging").text
    assert "Start the next batch" not in _client(FakeDesk()).get("/judging").text
    assert "Run Collection" not in _client(FakeDesk()).get("/judging").text
    assert "Run Collection" in _client(FakeDesk(judge="person"), "person", admin=True).get("/judging").text


def test_what_waits_says_how_far_it_is_and_how_long_it_takes() -> None:
    sheet = tip_sheet(3)
    sheet = replace(sheet, items=[replace(sheet.items[0], given=DONE), *sheet.items[1:]])
    text = _client(FakeDesk(sheet, candidates=60)).get("/judging").text
    assert "Continue: 1 of 3 items scored" in text
    assert 'href="/judging/b1"' in text
    assert "60 more texts wait for a judge" in text
    assert "About 45 min. Hand in the open batch first" in text
    assert "Start the next batch" not in text, "it would open the one that is open"
    assert "About 6 h in all." in _client(FakeDesk(candidates=480)).get("/judging").text


@pytest.mark.parametrize(
    ("candidates", "is_new", "sizes"),
    [
        (480, False, [(20, 20, "15 min"), (40, 40, "30 min"), (80, 80, "1 h"), (160, 160, "2 h")]),
        (32, False, [(20, 20, "15 min"), (40, 40, "30 min")]),
        (16, False, [(20, 20, "15 min")]),
        (3, False, [(20, 3, "2 min")]),
        (480, True, [(20, 20, "15 min")]),
        (3, True, [(20, 10, "8 min")]),
    ],
)
def test_sizes_go_up_to_what_waits(candidates: int, is_new: bool, sizes: list[tuple[int, int, str]]) -> None:
    assert sizes_for(Waiting([], candidates, is_new)) == sizes


def test_a_judge_chooses_a_size_and_a_new_one_sees_why_the_batch_is_small() -> None:
    desk = FakeDesk(candidates=480)
    client = _client(desk)
    assert 'value="160"' in client.get("/judging").text
    client.post("/judging", data={"csrf": "token-1", "items": "80"})
    client.post("/judging", data={"csrf": "token-1"})
    assert client.post("/judging", data={"csrf": "token-1", "items": "7"}).status_code == 422
    assert desk.sizes == [80, 20]
    desk.is_new = True
    text = client.get("/judging").text
    assert "you see how your scores compare with the rubric, before you spend more time" in text
    assert "Start the next batch: 20 items" in text
    assert 'value="160"' not in text


def test_a_batch_in_a_file_is_called_that_and_can_be_judged_here() -> None:
    desk = FakeDesk(tip_sheet(3), candidates=60)
    desk.exported = True
    text = _client(desk).get("/judging").text
    assert "Exported to a file on 1970-01-01 00:00 UTC: 3 items" in text
    assert "<code>tipbench judge --apply FILE</code>" in text
    assert re.search(r'href="/judging/b1">\s*Judge these here instead', text)
    assert "A batch is open" not in text
    assert "Start the next batch" in text


@pytest.mark.parametrize(
    ("seconds", "told"), [(45, "1 min"), (2700, "45 min"), (3590, "1 h"), (4000, "1 h 5 min"), (7200, "2 h")]
)
def test_durations_are_told_as_people_say_them(seconds: float, told: str) -> None:
    assert approximate_duration(seconds) == told


def test_starting_leads_to_the_batch() -> None:
    desk = FakeDesk(tip_sheet())
    answer = _client(desk).post("/judging", data={"csrf": "token-1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/judging/b1")
    assert "Nothing is left to judge" in _client(FakeDesk()).post("/judging", data={"csrf": "token-1"}).text


def test_starting_needs_the_session_s_token() -> None:
    desk = FakeDesk(tip_sheet())
    assert _client(desk).post("/judging", data={"csrf": "another"}).status_code == 403
    assert _client(desk).post("/judging").status_code == 415
    assert desk.asked == []


def test_an_admin_may_ask_for_an_experiment_and_its_name_is_shown_nowhere() -> None:
    desk = FakeDesk(tip_sheet(), judge="person", candidates=9)
    client = _client(desk, "person", admin=True)
    page = client.get("/judging", params={"experiment": "secret-llama"})
    answer = client.post("/judging", params={"experiment": "secret-llama"}, data={"csrf": "token-1"})
    assert desk.asked == ["secret-llama"]
    assert "secret-llama" not in page.text + answer.text + str(answer.headers)


def test_a_judge_takes_what_comes() -> None:
    desk = FakeDesk(tip_sheet())
    _client(desk).post("/judging", params={"experiment": "x"}, data={"csrf": "token-1"})
    assert desk.asked == [None]


def test_the_page_holds_the_rubric_and_no_item() -> None:
    sheet = tip_sheet(3)
    answer = _client(FakeDesk(sheet)).get("/judging/b1")
    assert answer.headers["cache-control"] == "no-store"
    assert "Look at level 1 and at the" in answer.text
    assert '<div class="level" data-score="5">' in answer.text
    assert "<noscript>" in answer.text
    assert sheet.items[0].candidate not in answer.text
    assert not re.search(r"<script(?![^>]* src=)|\son[a-z]+=|style=", answer.text)


def test_every_input_of_the_page_has_a_name_that_is_read_out() -> None:
    text = _client(FakeDesk(tip_sheet(1))).get("/judging/b1").text
    radios = re.findall(r'<label class="choice"><input type="radio"[^>]*><span>([^<]+)</span></label>', text)
    assert len(radios) == text.count('type="radio"') == 3 * 5 + 2 * 2
    assert re.findall(r"<legend>(\w[\w ]*)", text) == ["Relevance", "Actionability", "Tone", "Format ok ", "Overlong "]
    assert '<label for="note">' in text


def test_items_come_with_what_was_given() -> None:
    answer = _client(FakeDesk(_scored(tip_sheet(2)))).get("/judging/b1/items.json")
    assert answer.headers["cache-control"] == "no-store"
    item = answer.json()["items"][0]
    assert item["slot"] == "slot0000"
    assert item["given"] == {
        "scores": {"relevance": 4, "actionability": 3, "tone": 5},
        "flags": {"format_ok": None, "overlong": True},
        "note": "a note",
    }
    assert set(item) == {"slot", "scenario", "candidate", "checked", "given"}


def test_a_text_that_no_utf_8_can_hold_is_answered() -> None:
    answer = _client(FakeDesk(tip_sheet(1, texts=["a\ud800b"]))).get("/judging/b1/items.json")
    assert answer.json()["items"][0]["candidate"]["text"] == "a\\ud800b"


def test_a_change_is_saved_field_by_field() -> None:
    desk = FakeDesk(tip_sheet(2))
    client = _client(desk)
    client.patch("/judging/b1/items/slot0001", json={"scores": {"tone": 4}}, headers=HEADERS)
    answer = client.patch("/judging/b1/items/slot0001", json={"note": "so"}, headers=HEADERS)
    assert desk.changes == [("slot0001", {"scores": {"tone": 4}}), ("slot0001", {"note": "so"})]
    assert answer.json()["given"]["scores"]["tone"] == 4
    assert (answer.json()["done"], answer.json()["items"]) == (0, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"scores": {"tone": "4"}},
        {"scores": {"tone": True}},
        {"scores": {"tone": 4.5}},
        {"scores": 4},
        {"flags": {"overlong": 1}},
        {"note": None},
        {"note": "x" * (MAX_NOTE_LENGTH + 1)},
        {"slot": "slot0001"},
        [],
        "x",
    ],
)
def test_a_change_of_another_shape_is_refused(change: Any) -> None:
    desk = FakeDesk(tip_sheet())
    assert _save(_client(desk), change) == 422
    assert desk.changes == []


def test_another_s_batch_is_not_there() -> None:
    client = _client(FakeDesk(tip_sheet()), name="bob")
    assert client.get("/judging/b1").status_code == 404
    assert client.get("/judging/b1/items.json").status_code == 404
    assert _save(client, {"note": "x"}) == 404
    assert client.post("/judging/b1/submit", headers=HEADERS).status_code == 404
    assert client.get("/judging/b1/report").status_code == 404


def test_handing_in_needs_every_item() -> None:
    sheet = tip_sheet(3)
    sheet = replace(sheet, items=[replace(sheet.items[0], given=DONE), *sheet.items[1:]])
    answer = _client(FakeDesk(sheet)).post("/judging/b1/submit", headers=HEADERS)
    assert answer.status_code == 422
    assert answer.json()["first"] == "slot0001"
    assert answer.json()["error"]["message"] == "2 of 3 items are not scored completely"


def test_handing_in_leads_to_the_report_and_so_does_coming_back() -> None:
    client = _client(FakeDesk(_scored(tip_sheet(2))))
    for _ in range(2):
        answer = client.post("/judging/b1/submit", headers=HEADERS)
        assert (answer.status_code, answer.headers["location"]) == (303, "/judging/b1/report")
    assert client.get("/judging/b1").headers["location"] == "/judging/b1/report"
    text = client.get("/judging/b1/report").text
    assert "The scores of 60 texts count." in text
    assert 'class="card outcome counts"' in text
    assert "You and the rubric agree." in text
    assert "Nothing else waits for you." in text
    assert "Undo" not in text


def test_the_report_of_a_batch_on_hold() -> None:
    desk = FakeDesk(_scored(tip_sheet(2)))
    client = _client(desk)
    client.post("/judging/b1/submit", headers=HEADERS)
    desk.applied = applied(1, quarantine="relevance: <b>far</b>; tone: off")
    desk.candidates = 480
    text = client.get("/judging/b1/report").text
    assert 'class="card outcome in-quarantine"' in text
    assert "quarantine" not in re.sub(r'class="[^"]*"', "", text)
    assert "<li>Relevance: &lt;b&gt;far&lt;/b&gt;.</li><li>Tone: off.</li>" in text
    assert "What the rubric says about tone" in text
    assert "+0.54 to +1.03" in text
    assert 'action="/judging"' in text, "the next batch starts from here"
    assert "slot0" not in text


def test_there_is_no_report_before_handing_in() -> None:
    assert _client(FakeDesk(tip_sheet())).get("/judging/b1/report").status_code == 404


def test_the_data_is_json_that_every_tool_can_read() -> None:
    answer = _client(FakeDesk(tip_sheet(2))).get("/judging/b1/items.json")
    assert answer.headers["content-type"] == "application/json"
    assert [step["name"] for step in json.loads(answer.content)["steps"]][:2] == ["relevance", "actionability"]
