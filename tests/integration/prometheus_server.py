"""Prometheus and promtool from Debian's packages."""

import subprocess
from pathlib import Path

import pytest

from tests.integration.debian_packages import PackageUnavailable, find_program

TOKEN_FILE = "/etc/prometheus/tipbench-token"  # as prometheus.yml names it


def prometheus_program(name: str) -> Path:
    """Return `prometheus` or `promtool`; skip the test if it can't be had."""
    try:
        return find_program("prometheus", name)
    except PackageUnavailable as error:
        pytest.skip(str(error))


def promtool(*words: str | Path) -> str:
    """Run promtool, which must succeed; return what it prints."""
    done = subprocess.run([prometheus_program("promtool"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
