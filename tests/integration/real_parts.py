"""Brings the real parts that the tests use and that are no Python packages, so that no test waits for them.

``make test`` runs it before the tests. What is missing is named in a sentence, with what to install.
"""

import sys
import tempfile
from pathlib import Path

from tests.axe import axe_script
from tests.browser import BrowserUnavailable, find_browser
from tests.integration.airflow_server import VENV, AirflowServer
from tests.integration.debian_packages import PackageUnavailable, find_program
from tests.integration.mlflow_server import make_database
from tests.integration.real_ollama.server import OllamaServer, RealOllamaError, default_cache, unsupported_reason


def main() -> int:
    try:
        find_browser()
        axe_script()
        if reason := unsupported_reason():
            print(f"{reason} The tests that use it will be skipped.", file=sys.stderr)
        else:
            OllamaServer.start(default_cache()).stop()  # it makes its models at its first start
    except (BrowserUnavailable, RealOllamaError) as error:
        print(error, file=sys.stderr)
        return 1
    for package in ("nginx", "prometheus"):
        try:
            find_program(package, package)
        except PackageUnavailable as error:
            print(f"{error} The tests that use it will be skipped.", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        make_database(Path(folder))
        if VENV.exists():
            AirflowServer(Path(folder), {}).make_database()
    return 0


if __name__ == "__main__":
    sys.exit(main())
