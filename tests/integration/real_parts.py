"""Brings the real parts that the tests use and that are no Python packages, so that no test waits for a download.

``make test`` runs it before the tests. What is missing is named in a sentence, with what to install.
"""

import sys

from tests.browser import BrowserUnavailable, find_browser
from tests.integration.real_ollama.server import RealOllamaError, default_cache, prepare, unsupported_reason


def main() -> int:
    try:
        find_browser()
        if reason := unsupported_reason():
            print(f"{reason} The tests that use it will be skipped.", file=sys.stderr)
        else:
            prepare(default_cache())
    except (BrowserUnavailable, RealOllamaError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
