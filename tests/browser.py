"""A real browser for the tests of pages: Debian's Chromium, driven by Playwright."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
# What htmx says of a request that a newer one replaced; of one that failed it says sendError as well.
_REPLACED = ("htmx:afterRequest", "htmx:sendAbort")
_QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """While it is open, asyncio.run can't be called in this thread."""
    if not CHROMIUM.exists():
        pytest.fail(f"{CHROMIUM} is not there; install Debian's package 'chromium'")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_QUIET))
        yield opened
        opened.close()


class Watched:
    """What a page should never do: open a dialog, fail in a script, or break its own policy."""

    def __init__(self, page: Page) -> None:
        self.troubles: list[str] = []
        page.on("dialog", self._close)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda said: self._hear(said.type, said.text))

    def _close(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _hear(self, kind: str, text: str) -> None:
        is_answer = "the server responded with a status of 4" in text
        if kind == "error" and not is_answer and not text.startswith(_REPLACED):
            self.troubles.append(f"console: {text}")
