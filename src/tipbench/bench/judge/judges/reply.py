"""What a judge's program or server gave back, read as a judge file. Whether it fits its batch is checked later."""

import json
from typing import Any

from tipbench.bench.judge.verify import without_doubles
from tipbench.core.errors import JudgeFailed
from tipbench.core.untrusted import printable


def read_reply(content: bytes, who: str) -> dict[str, Any]:
    """The JSON object that a judge answered with; `who` begins the sentence where there is none."""
    try:
        data = json.loads(content.decode("utf-8-sig"), object_pairs_hook=without_doubles)
    except UnicodeDecodeError:
        raise JudgeFailed(f"{who} answered something that is not UTF-8 text; it must give the filled-in file") from None
    except (ValueError, RecursionError) as error:
        raise JudgeFailed(
            f"{who} answered something that is no JSON ({printable(str(error), 120)}); it must give the filled-in file"
        ) from None
    if not isinstance(data, dict):
        raise JudgeFailed(f"{who} answered a JSON {type(data).__name__}, no object; it must give the filled-in file")
    return data
