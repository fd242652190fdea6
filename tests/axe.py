"""axe, the checker of accessible pages, as npm publishes it: what it finds wrong with a page in a real browser."""

import shutil
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

from tests.browser import npm_package
from tests.user_cache import built_once, cache_folder

PACKAGE = "axe-core@4.14.0"
INTEGRITY = "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ=="
_RUN = """
async () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) =>
    `${one.impact}: ${one.help} (${one.id}), ${one.nodes.length}×, such as ${one.nodes[0].html.slice(0, 200)}: ` +
    `${one.nodes[0].failureSummary.slice(0, 300)}`);
}
"""


@cache
def axe_script() -> str:
    """Return axe's source, brought into the user's cache once."""
    folder = built_once(cache_folder("test-axe"), PACKAGE.replace("@", "-"), _bring)
    return (folder / "axe.min.js").read_text()


def _bring(folder: Path) -> None:
    with npm_package(PACKAGE, INTEGRITY, folder.parent) as package:
        shutil.copy(package / "axe.min.js", folder)


def serious_faults(page: Page) -> list[str]:
    """Return the serious and critical faults of the page that is open, with everything unfolded."""
    page.evaluate(f"{axe_script()}; undefined")
    found: list[str] = page.evaluate(_RUN)
    return found
