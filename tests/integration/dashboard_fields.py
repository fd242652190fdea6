"""Prints what Grafana's own models of a dashboard do not know, line by line: python dashboard_fields.py FILE.

It runs by itself, with Grafana's SDK on the path: a field with a slip of the pen is one that its models leave out.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def main() -> None:
    dashboard = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sdk = "grafana_foundation_sdk"
    importlib.import_module(f"{sdk}.cog.plugins").register_default_plugins()
    read = importlib.import_module(f"{sdk}.models.dashboard").Dashboard.from_json(dashboard)
    written = importlib.import_module(f"{sdk}.cog.encoder").JSONEncoder().encode(read)
    print("\n".join(_lost(dashboard, json.loads(written), "")))


def _lost(given: Any, known: Any, where: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            yield from _lost(value, known.get(key), f"{where}.{key}")
    elif isinstance(given, list) and isinstance(known, list) and len(given) == len(known):
        for number, (one, other) in enumerate(zip(given, known, strict=True)):
            yield from _lost(one, other, f"{where}[{number}]")
    elif given != known:
        yield f"{where}: {given!r}, {known!r}"


if __name__ == "__main__":
    main()
