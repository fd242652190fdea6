"""Files to keep: always an attachment, so that a browser shows nothing of them in our name."""

import re
from collections.abc import Mapping

_LONGEST = 80


def attachment(name: str, ending: str) -> Mapping[str, str]:
    """The header for a file that is called after something with an arbitrary name."""
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_LONGEST] or "tipbench"
    return {"Content-Disposition": f'attachment; filename="{safe}.{ending}"'}
