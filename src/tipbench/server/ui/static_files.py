"""Style sheets and scripts, as files of the package. Nothing in them is secret."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from starlette.staticfiles import StaticFiles

from tipbench.bench.compare import html

_OWN = Path(__file__).parent / "static"
_REPORT = Path(html.__file__).parent
_OF_THE_REPORT = ("foundation.css", "report.css")  # report and panel look alike because they share these
_LONGEST = 80


class PanelFiles(StaticFiles):
    """To be mounted at /static."""

    def __init__(self) -> None:
        super().__init__(directory=_OWN)

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        if path in _OF_THE_REPORT:
            found = _REPORT / path
            return str(found), found.stat()
        return super().lookup_path(path)


# Files to keep: always an attachment, so that a browser shows nothing of them in our name.


def attachment(name: str, ending: str) -> Mapping[str, str]:
    """The header for a file that is called after something with an arbitrary name."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_LONGEST] or "tipbench"
    return {"Content-Disposition": f'attachment; filename="{safe}.{ending}"'}
