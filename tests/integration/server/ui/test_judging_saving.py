"""The judging page in a browser: what happens to scores when server, session or tab are gone."""

import re
from dataclasses import replace

from playwright.sync_api import Browser, expect

from tests.integration.server.ui.judging_room import ADA, judging
from tests.server.ui.fake_desk import tip_sheet
from tipbench.web.tokens import Visitor

REFUSED = "net::ERR_CONNECTION_REFUSED"


def test_a_page_loaded_again_goes_on_where_it_was(browser: Browser) -> None:
    with judging(browser, tip_sheet(6)) as room:
        room.type("435\n42")
        room.saved()
        room.page.reload()
        room.heading("Item 2 of 6")
        expect(room.at("#step-tone")).to_have_class(re.compile("in-focus"))
        room.type("1\n")
        assert room.saved()[:2] == [[4, 3, 5], [4, 2, 1]]
        assert room.troubles == []


def test_a_server_that_goes_away_and_comes_back(browser: Browser) -> None:
    with judging(browser, tip_sheet(6)) as room:
        room.type("111\n")
        room.saved()
        room.server.stop()
        room.type("435\n352\n")
        expect(room.at("#saving")).to_have_text("not saved: the server does not answer, trying again")
        expect(room.at("#announcement")).to_contain_text("not saved")
        room.type("5")
        room.heading("Item 4 of 6")
        room.server.start()
        assert room.saved() == [[1, 1, 1], [4, 3, 5], [3, 5, 2], [5, None, None], [None] * 3, [None] * 3]
        assert all(REFUSED in trouble for trouble in room.troubles)


def test_a_tab_that_is_closed_loses_nothing(browser: Browser) -> None:
    with judging(browser, tip_sheet(4)) as room:
        room.server.stop()
        room.type("435\n12n")
        room.type("half a thou")
        room.page.close()
        room.server.start()
        room.open()
        assert room.saved() == [[4, 3, 5], [1, 2, None], [None] * 3, [None] * 3]
        assert room.given(1).note == "half a thou"
        expect(room.at("#item-heading")).to_have_text("Item 2 of 4")
        expect(room.at("#note")).to_have_value("half a thou")
        assert room.page.evaluate("Object.keys(localStorage)") == []


def test_leaving_is_warned_of_while_something_is_unsent(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        room.type("4")
        room.saved()
        room.page.close(run_before_unload=True)
        assert room.troubles == []
        page = room.open()
        room.server.stop()
        room.type("4")
        with page.expect_event("dialog", timeout=5000) as asked:
            page.close(run_before_unload=True)
        assert asked.value.type == "beforeunload"
        room.server.start()


def test_a_session_that_is_over_loses_nothing(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        room.session.visitor = None
        room.type("435")
        expect(room.at("#saving")).to_contain_text("Log in again in another tab; nothing is lost")
        room.session.visitor, room.session.token = ADA, "token-2"  # logged in again: the page's token is an old one
        assert room.saved()[0] == [4, 3, 5]


def test_two_tabs_keep_each_other_s_fields(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        first, second = room.page, room.open()
        first.keyboard.type("4")
        expect(second.locator("#step-relevance input:checked")).to_have_value("4")
        second.keyboard.type("5")
        second.keyboard.type("3")
        expect(first.locator("#step-actionability input:checked")).to_have_value("3")
        first.keyboard.type("25")
        expect(second.locator("#step-tone input:checked")).to_have_value("5")
        assert room.saved()[0] == [5, 2, 5]


def test_the_later_of_two_tabs_wins_though_it_gets_through_first(browser: Browser) -> None:
    with judging(browser, tip_sheet(1)) as room:
        first, second = room.page, room.open()
        for page, keys in ((first, "21"), (second, "3")):
            page.route("**/items/*", lambda route: route.abort())
            page.keyboard.type(keys)
            expect(page.locator("#saving")).to_contain_text("trying again")
        for page in (second, first):
            page.unroute("**/items/*")
            page.evaluate("dispatchEvent(new Event('online'))")
            expect(page.locator("#saving")).to_have_text("saved")
            expect(page.locator("#step-relevance input:checked")).to_have_value("3")
        assert room.saved()[0] == [3, 1, None]


def test_the_end_leads_to_what_is_not_scored(browser: Browser) -> None:
    with judging(browser, tip_sheet(3)) as room:
        room.type("435\n\n435\n")
        expect(room.at("#finish-heading")).to_have_text("1 of 3 items is not scored yet")
        expect(room.at("#hand-in")).to_be_hidden()
        room.at("#first-unscored").click()
        room.heading("Item 2 of 3")
        room.type("111")
        room.press("f")
        room.saved()
        item = room.desk.sheets["b1"].items[1]  # another device takes a score back
        room.desk.save("b1", "ada", item.slot, {"scores": {"tone": None}})
        room.at("#hand-in").click()
        expect(room.at("#finish-heading")).to_have_text("1 of 3 items is not scored yet")
        expect(room.at("#finish-text")).to_contain_text("Not handed in: 1 of 3 items is not scored completely.")
        assert not room.desk.sheets["b1"].handed_in
        room.at("#first-unscored").click()
        room.heading("Item 2 of 3")


def test_a_batch_that_was_handed_in_elsewhere_takes_no_change(browser: Browser) -> None:
    with judging(browser, tip_sheet(2)) as room:
        room.desk.sheets["b1"] = replace(room.desk.sheets["b1"], handed_in=True)
        room.type("4")
        expect(room.at("#saving")).to_contain_text("not saved: the batch was handed in.")
        assert room.desk.changes == []


def test_handing_in_waits_until_everything_is_saved(browser: Browser) -> None:
    with judging(browser, tip_sheet(1)) as room:
        room.page.route("**/items/*", lambda route: route.abort())
        room.type("435\n")
        room.at("#hand-in").click()
        expect(room.at("#finish-text")).to_have_text("It is handed in as soon as everything is saved.")
        assert not room.desk.sheets["b1"].handed_in
        room.page.unroute("**/items/*")
        room.page.evaluate("dispatchEvent(new Event('online'))")
        room.page.wait_for_url("**/judging/b1/report")
        assert room.desk.scores() == [[4, 3, 5]]


def test_another_judge_who_logs_in_meanwhile_loses_nothing_of_the_first_one_s(browser: Browser) -> None:
    with judging(browser, tip_sheet(1)) as room:
        room.session.visitor = Visitor("judge", "bob")
        room.type("4")
        expect(room.at("#saving")).to_contain_text("not saved: there is no batch b1 for you.")
        room.session.visitor = ADA
        room.page.reload()
        room.heading("Item 1 of 1")
        assert room.saved() == [[4, None, None]]
