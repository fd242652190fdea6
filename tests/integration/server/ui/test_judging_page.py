"""The judging page in a browser: keys, texts, scales, a phone."""

import random
import re

import pytest
from playwright.sync_api import Browser, expect

from tests.integration.server.ui.judging_room import judging
from tests.server.ui.fake_desk import scale_sheet, tip_sheet


def test_thirty_items_by_keyboard_at_full_speed_and_handing_in(browser: Browser) -> None:
    drawn = random.Random(6)
    scores = [[drawn.randint(1, 5) for _ in range(3)] for _ in range(30)]
    with judging(browser, tip_sheet(30)) as room:
        room.type("".join("".join(map(str, item)) + "\n" for item in scores))
        assert room.saved() == scores
        expect(room.at("#finish-heading")).to_be_focused()
        expect(room.at("#finish-heading")).to_have_text("All 30 items are scored")
        expect(room.at("#pace")).to_have_text("30 of 30 scored")
        room.press("Tab", "Tab", "Enter")
        room.page.wait_for_url("**/judging/b1/report")
        expect(room.at(".headline")).to_have_text("You and the rubric agree.")
        assert room.troubles == []


def test_keys_move_between_criteria_and_items(browser: Browser) -> None:
    with judging(browser, tip_sheet(4)) as room:
        expect(room.at("#item-heading")).to_be_focused()
        expect(room.at("#rubric-title")).to_have_text("Relevance")
        room.type("4")
        expect(room.at("#step-actionability input").first).to_be_focused()
        expect(room.at("#about-actionability")).to_be_visible()
        expect(room.at("#about-relevance")).to_be_hidden()
        room.type("97")  # not on the scale
        room.type("35")
        expect(room.at("#next")).to_be_focused()
        room.type("2")  # nothing is left to score here
        room.press("ArrowRight", "ArrowRight", "Backspace")
        room.heading("Item 2 of 4")
        room.press("f")
        room.heading("Item 3 of 4")
        room.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowDown")  # 1, 2, 3, 2
        expect(room.at("#about-relevance .level.chosen dt")).to_have_text("2")
        room.press("f", "f", "f")
        room.heading("Item 3 of 4")  # item 1 is left out: it has all its scores
        room.press("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft")
        room.heading("Item 1 of 4")
        expect(room.at("#step-relevance input:checked")).to_have_value("4")
        assert room.saved() == [[4, 3, 5], [None] * 3, [2, None, None], [None] * 3]
        assert room.troubles == []


def test_keys_with_modifiers_are_the_browser_s_own(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        room.press("Alt+4", "Control+4", "Control+f", "Alt+n")
        room.heading("Item 1 of 2")
        expect(room.at("#item-heading")).to_be_focused()
        assert room.saved() == [[None] * 3] * 2


def test_help_lists_the_keys_and_keeps_them_from_working(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        room.press("?")
        expect(room.at("#help")).to_be_visible()
        for key in ("f", "n", "u", "r", "Backspace", "Esc"):
            expect(room.at("#help kbd").get_by_text(key, exact=True)).not_to_have_count(0)
        room.type("4")
        room.press("Escape")
        expect(room.at("#help")).to_be_hidden()
        assert room.saved() == [[None] * 3] * 2
        expect(room.at("#introduction")).to_have_attribute("open", "")
        room.press("r")
        expect(room.at("#introduction")).not_to_have_attribute("open", "")


def test_undo_goes_back_over_items_notes_and_flags(browser: Browser) -> None:
    with judging(browser, tip_sheet(40)) as room:
        room.type("435\n" * 38)
        room.press("n")
        room.type("first thought")
        room.press("Escape")
        room.page.get_by_role("group", name="Overlong").get_by_role("radio", name="Yes").click()
        room.saved()
        assert room.given(38).flags["overlong"] is True
        room.press("u", "Control+z")
        room.heading("Item 39 of 40")
        expect(room.at("#note")).to_have_value("")
        room.press("u")
        room.heading("Item 38 of 40")
        expect(room.at("#step-tone")).to_have_class(re.compile("in-focus"))
        room.press(*"u" * 104)
        room.heading("Item 4 of 40")
        scores = room.saved()
        assert scores[:4] == [[4, 3, 5]] * 3 + [[None] * 3]
        assert scores[4:] == [[None] * 3] * 36
        assert (room.given(38).note, room.given(38).flags["overlong"]) == ("", None)
        room.type("221")
        assert room.saved()[3] == [2, 2, 1]
        assert room.troubles == []


def test_a_note_takes_every_key_but_two(browser: Browser) -> None:
    with judging(browser, tip_sheet(3)) as room:
        room.type("4n")
        room.type("1 u f n ? 5\nü 漢 😀 <b>")
        room.press("Escape")
        expect(room.at("#step-actionability input").first).to_be_focused()
        expect(room.at("#strip button").first).to_have_attribute("aria-label", "Item 1, not scored, with a note")
        room.press("n", "Control+Enter")
        room.heading("Item 2 of 3")
        expect(room.at("#note")).to_have_value("")
        assert room.saved()[0] == [4, None, None]
        assert room.given(0).note == "1 u f n ? 5\nü 漢 😀 <b>"
        room.press("ArrowLeft")
        expect(room.at("#note")).to_have_value("1 u f n ? 5\nü 漢 😀 <b>")


HOSTILE = [
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>",
    "[click](javascript:window.hacked=3) ![x](http://example.invalid/x.png) <a href='javascript:alert(1)'>a</a>",
    "\x1b]0;title\x07\x1b[2J\x1b[31mred\x00 \u202egnp.exe\u2066 \u2028 \ud800",
    "</div></main><style>*{display:none}</style><meta http-equiv=refresh content='0;url=/'>",
    "x" * 1_000_000,
    "Z\u0351\u036b\u0343\u036a\u0302" * 500,
    "",
]


def test_hostile_texts_stay_texts(browser: Browser) -> None:
    with judging(browser, tip_sheet(len(HOSTILE), texts=HOSTILE)) as room:
        for number in range(len(HOSTILE)):
            room.heading(f"Item {number + 1} of {len(HOSTILE)}")
            shown = room.at("#candidate")
            assert shown.evaluate("box => box.childElementCount") == 0
            widths = "[document.documentElement.scrollWidth, innerWidth]"
            assert room.page.evaluate(f"{widths}[0] <= {widths}[1]")
            box = shown.bounding_box()
            assert box is not None
            assert box["height"] < 400
            room.type("333\n")
        assert room.saved() == [[3, 3, 3]] * len(HOSTILE)
        for number, text in ((1, HOSTILE[0]), (3, r"\u001b]0;title\u0007\u001b[2J\u001b[31mred\u0000 \u202egnp.exe")):
            room.at("#strip button").nth(number - 1).click()
            assert text in str(room.at("#candidate").text_content())
        room.at("#strip button").nth(4).click()
        expect(room.at("#candidate-cut")).to_have_text("980,000 more characters are not shown.")
        room.at("#strip button").nth(6).click()
        expect(room.at("#candidate")).to_have_text("(empty)")
        assert room.page.evaluate("window.hacked") is None
        assert room.page.title() == "Judging – tipbench"
        assert room.troubles == []


def test_a_scale_with_two_digits(browser: Browser) -> None:
    with judging(browser, scale_sheet(1, 10)) as room:
        room.type("107\n")  # 10, 7
        room.type("15\n")  # 1, 5: 15 is not on the scale
        room.type("1")
        expect(room.at("#step-clarity")).to_have_class(re.compile("in-focus"))
        room.press("Enter")  # past the 1 that could have become a 10
        room.heading("Item 3 of 3")
        room.type("10")
        assert room.saved() == [[10, 7], [1, 5], [1, 10]]
        expect(room.at("#next")).to_be_focused()


def test_a_scale_below_nought(browser: Browser) -> None:
    with judging(browser, scale_sheet(-2, 2, count=2)) as room:
        room.type("-20\n")
        room.type("1-1\n")
        assert room.saved() == [[-2, 0], [1, -1]]


def test_flags_are_overruled_and_answered(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        expect(room.at("#checked-overlong")).to_have_text("checked by code")
        room.page.get_by_role("group", name="Overlong").get_by_role("radio", name="Yes").click()
        expect(room.at("#checked-overlong")).to_have_text("overruled")
        room.saved()
        assert room.given(0).flags == {"format_ok": None, "overlong": True}
        room.page.get_by_role("group", name="Overlong").get_by_role("radio", name="No").click()
        room.saved()
        assert room.given(0).flags == {"format_ok": None, "overlong": None}
    with judging(browser, tip_sheet(2, answered=False)) as room:
        room.type("435")
        expect(room.at("#checked-format_ok")).to_have_text("to be answered")
        expect(room.at("#pace")).to_have_text("0 of 2 scored")
        room.type("10\n")
        expect(room.at("#pace")).to_have_text("1 of 2 scored")
        room.saved()
        assert room.given(0).flags == {"format_ok": True, "overlong": False}


def test_pace_is_told_without_pauses(browser: Browser) -> None:
    with judging(browser, tip_sheet(40)) as room:
        room.page.clock.install()
        room.page.reload()
        room.page.locator("#judging").wait_for()
        for seconds in (9, 9, 100, 9, 12):
            room.page.clock.fast_forward(seconds * 1000)
            room.type("4")
            room.page.clock.fast_forward(300_000)
            room.type("35\n")
        expect(room.at("#pace")).to_have_text("5 of 40 scored · 9 s an item · about 5 min left")


def test_what_a_screen_reader_meets(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        room.type("4")
        expect(room.at("#announcement")).to_have_text("Item 1 of 2. Relevance 4. Saved.")
        tone = room.page.get_by_role("group", name="Tone")
        expect(tone.get_by_role("radio", name="3", exact=True)).to_have_count(1)
        assert (
            room.page.evaluate("""
            [...document.querySelectorAll("input:not([type=hidden]), textarea, button, progress")]
                .filter((one) => !(one.labels?.length || one.textContent.trim() || one.ariaLabel))
                .map((one) => one.outerHTML)
        """)
            == []
        )
        ids = room.page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: Browser, scheme: str) -> None:
    size = {"width": 375, "height": 700}
    with judging(browser, tip_sheet(3), viewport=size, has_touch=True, color_scheme=scheme) as room:
        assert room.page.evaluate("document.documentElement.scrollWidth") <= 375
        expect(room.at("#rubric-fold")).not_to_have_attribute("open", "")
        for criterion, score in (("relevance", 4), ("actionability", 3), ("tone", 5)):
            choice = room.at(f"#step-{criterion} label").nth(score - 1)
            box = choice.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) >= 44
            choice.tap()
        expect(room.at("#candidate")).to_be_in_viewport()
        room.at("#next").tap()
        room.heading("Item 2 of 3")
        assert room.saved()[0] == [4, 3, 5]
        assert room.troubles == []


def test_what_each_score_means_is_beside_the_buttons_and_nothing_moves(browser: Browser) -> None:
    with judging(browser, tip_sheet(20), viewport={"width": 1280, "height": 800}) as room:
        places = []
        for criterion in ("relevance", "actionability", "tone"):
            expect(room.at("#rubric-title")).to_have_text(criterion.capitalize())
            for level in room.at(f"#meaning-{criterion} .level").all():
                expect(level).to_be_in_viewport(ratio=1)
            assert room.at(f"#meaning-{criterion} .level").count() == 5
            places.append([room.at(part).bounding_box() for part in ("#step-tone", "#next", "#rubric-fold")])
            room.type("2")
        expect(room.at("#meaning-tone .level.chosen dt")).to_have_text("2")
        assert places[0] == places[1] == places[2]
        assert room.page.evaluate("document.documentElement.scrollHeight") <= 800


@pytest.mark.parametrize(("width", "rows"), [(1280, 40), (375, 10)])
def test_a_strip_of_300_items_is_in_tens_and_shows_the_item_on_show(browser: Browser, width: int, rows: int) -> None:
    with judging(browser, tip_sheet(300), viewport={"width": width, "height": 800}) as room:
        strip, marks = room.at("#strip"), room.at("#strip button")
        before = strip.bounding_box()
        assert before is not None
        assert before["height"] <= 80
        left = strip.evaluate("(strip) => [...strip.querySelectorAll('button')].map((one) => one.offsetLeft)")
        assert left[:rows] == left[rows : 2 * rows], "rows of whole tens"
        room.page.evaluate("document.querySelectorAll('#strip button')[249].click()")
        room.heading("Item 250 of 300")
        expect(marks.nth(249)).to_be_in_viewport(ratio=0.9)
        room.type("345")
        room.saved()
        room.at("#unscored").click()
        room.heading("Item 251 of 300")
        assert strip.bounding_box() == before
        assert room.page.evaluate("document.documentElement.scrollWidth") <= width
