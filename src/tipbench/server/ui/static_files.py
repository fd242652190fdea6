"""Style sheets and scripts from the package; none of them is secret."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from starlette.staticfiles import StaticFiles

from tipbench.bench.compare import html

_OWN = Path(__file__).parent / "static"
_REPORT = Path(html.__file__).parent
_SHARED_WITH_REPORT = ("foundation.css", "report.css")  # make the report and the pages look alike
_MAX_NAME_LENGTH = 80


class PanelFiles(StaticFiles):
    """The app to mount at /static."""

    def __init__(self) -> None:
        super().__init__(directory=_OWN)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        if path in _SHARED_WITH_REPORT:
            found = _REPORT / path
            return str(found), found.stat()
        return super().lookup_path(path)


# Downloads: always an attachment, so that a browser never shows them in our origin.


def attachment(name: str, ending: str) -> Mapping[str, str]:
    """Return the header for a download named after something with an arbitrary name."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_MAX_NAME_LENGTH] or "tipbench"
    return {"Content-Disposition": f'attachment; filename="{safe}.{ending}"'}
