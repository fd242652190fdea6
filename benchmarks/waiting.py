"""Everything that people wait for, measured in one go: collecting, comparing, reading, judging, and the recommender.

    .venv/bin/python -m benchmarks.waiting                   # 15 to 40 minutes on a quiet machine, 6 GB of disk
    .venv/bin/python -m benchmarks.waiting --only peers serving
    .venv/bin/python -m benchmarks.waiting --before FOLDER   # beside the tipbench in another checkout

Runs other measurements one after the other, each with the words below, and prints their tables and verdicts once more
as Markdown at the end. Exits with 1 if one of them did.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.parts.checkouts import add_before
from benchmarks.parts.table import out

MEASUREMENTS = {
    "peers": ("peers", "--rounds", "3"),
    "recommending": ("recommending", "--rounds", "3", "--seconds", "3"),
    "compare": ("compare", "--rounds", "1"),
    "serving": ("serving", "--seconds", "30"),
    "reading": ("reading", "--rounds", "2"),
    "runs": ("reading", "--curve", "--rounds", "1"),
    "cells": ("memory",),
}
_WITHOUT_BEFORE = ("runs", "cells")
_SETTLE_S = 10.0  # files that were just deleted slow down the next measurement


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS), help="some of them")
    add_before(parser)
    asked = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        markdown = Path(folder) / "tables.md"
        for name in asked.only:
            words = list(MEASUREMENTS[name])
            if asked.before and name not in _WITHOUT_BEFORE:
                words += ["--before", str(asked.before)]
            with markdown.open("a", encoding="utf-8") as file:
                file.write(f"\n\n**`benchmarks.{' '.join(words)}`**\n")
            began = time.monotonic()
            environment = {**os.environ, "BENCHMARKS_MARKDOWN": str(markdown)}
            module, *flags = words
            ended = subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *flags], env=environment, check=False)
            if ended.returncode:
                failed.append(name)
            out.print(f"{name} took {(time.monotonic() - began) / 60:.1f} minutes", style="dim")
            time.sleep(_SETTLE_S)
        print(markdown.read_text(encoding="utf-8"))
    out.print(f"Short of a promise, or failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
