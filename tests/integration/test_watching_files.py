"""The files of `deploy/prometheus` and `deploy/grafana` as they are, before promtool and Grafana's own SDK.

Grafana itself can't be had from the packages that tests may use: the dashboard was never shown in one. That alerts fire
in earnest, and that each expression of the dashboard finds something: test_watched.py.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import dashboard_fields
from tests.integration.deployed import DASHBOARD, DEPLOY
from tests.integration.prometheus_server import TOKEN_FILE, promtool
from tests.user_cache import built_once, cache_folder

FILES = DEPLOY / "prometheus"
SDK = "grafana-foundation-sdk==1769699998!10.1.0"  # for Grafana 10.1, the oldest; that of 11.6 knows the same fields
SDK_DIGEST = "d131ffe49057fb669ba31ce7e28a303c96b3aecf4332b20de33cfa55110d498c"


def test_prometheus_takes_the_configuration_and_the_rules(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a token")
    config = (FILES / "prometheus.yml").read_text()
    assert TOKEN_FILE in config
    (tmp_path / "prometheus.yml").write_text(config.replace(TOKEN_FILE, str(tmp_path / "token")))
    shutil.copy(FILES / "alerts.yml", tmp_path)
    assert "1 rule files found" in promtool("check", "config", tmp_path / "prometheus.yml")


def test_each_alert_fires_for_its_fault_and_not_for_the_noise_beside_it() -> None:
    promtool("test", "rules", *FILES.glob("*.test.yml"))


def test_grafana_knows_every_field_of_the_dashboard(tmp_path: Path) -> None:
    sdk = built_once(cache_folder("test-grafana-sdk"), SDK_DIGEST[:12], _bring_sdk)
    assert unknown_fields(sdk, DASHBOARD) == ""
    (tmp_path / "slip.json").write_text(DASHBOARD.read_text().replace('"fillOpacity"', '"filOpacity"', 1))
    assert "filOpacity" in unknown_fields(sdk, tmp_path / "slip.json")


def unknown_fields(sdk: Path, dashboard: Path) -> str:
    command = [sys.executable, dashboard_fields.__file__, str(dashboard)]
    done = subprocess.run(command, env={"PYTHONPATH": str(sdk)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _bring_sdk(folder: Path) -> None:
    asked = folder.parent / "requirements.txt"
    asked.write_text(f"{SDK} --hash=sha256:{SDK_DIGEST}\n")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps"]
    command = [*pip, "--only-binary=:all:", "--require-hashes", "--requirement", str(asked), "--target", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(
            f"Grafana's SDK has not checked the dashboard, because it can't be had: {done.stderr.strip()[-200:]}"
        )
