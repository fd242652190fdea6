"""A judge at the judging page: a desk in memory, a real server and a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, expect

from tests.server.ui.fake_desk import FakeDesk
from tests.server.ui.judging_server import Server, Session, make_app
from tipbench.server.views.sheet import Sheet
from tipbench.web.tokens import Visitor

ADA = Visitor("judge", "ada")


class Room:
    """A judge at the page: desk, server and browser."""

    def __init__(self, context: BrowserContext, sheet: Sheet) -> None:
        self.desk = FakeDesk(sheet)
        self.session = Session(ADA)
        self.server = Server(make_app(self.desk, self.session))
        self.context = context
        self.troubles: list[str] = []
        self.page = self.open()

    def open(self) -> Page:
        """Another tab; it becomes the one in use."""
        page = self.context.new_page()
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", self._answer)
        page.goto(f"{self.server.url}/judging/b1")
        page.locator("#judging").wait_for()
        self.page = page
        return page

    def type(self, keys: str) -> None:
        self.page.keyboard.type(keys)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def at(self, selector: str) -> Locator:
        return self.page.locator(selector)

    def saved(self) -> list[list[int | None]]:
        """The scores on the desk, once the page says that all is saved."""
        expect(self.at("#saving")).to_have_text("saved", timeout=20_000)
        return self.desk.scores()

    def given(self, item: int) -> Any:
        return self.desk.sheets["b1"].items[item].given

    def heading(self, text: str) -> None:
        expect(self.at("#item-heading")).to_have_text(text)

    def _answer(self, dialog: Dialog) -> None:
        self.troubles.append(dialog.type)
        dialog.accept()

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.troubles.append(text)


@contextmanager
def judging(browser: Browser, sheet: Sheet, **options: Any) -> Iterator[Room]:
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
    room = Room(context, sheet)
    try:
        yield room
    finally:
        context.close()
        room.server.stop()
