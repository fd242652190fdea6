"""What `deploy/` promises and no other program checks: secrets in one file, versions in step, nothing run by root."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.integration.deployed import DEPLOY, ROOT, read_compose, read_unit, unit_command
from tipbench.core.settings import TABLE
from tipbench.core.version import __version__

SERVE, RECOMMEND = (DEPLOY / "systemd" / f"{name}.service" for name in ("tipbench", "tipbench-recommend"))
METRICS = "TIPBENCH_METRICS_TOKEN"
OURS = ("mlflow", "serve", "recommend")
SECRETS = dict.fromkeys(("TIPBENCH_ADMIN_TOKEN", "TIPBENCH_SERVING_KEY", METRICS, "POSTGRES_PASSWORD"), "x")
FILE = {**SECRETS, "TIPBENCH_SHADOWS": "x"}
IS_SECRET = {setting.name for setting in TABLE if setting.secret} | {"POSTGRES_PASSWORD", "MLFLOW_BACKEND_STORE_URI"}


def test_each_unit_gets_its_own_secrets_alone() -> None:
    found = [unit_command(path, FILE).environment for path in (SERVE, RECOMMEND)]
    secrets = [{name for name in environment if name in IS_SECRET} for environment in found]
    assert secrets == [{"TIPBENCH_ADMIN_TOKEN", METRICS}, {"TIPBENCH_SERVING_KEY", METRICS}]
    assert all(environment["TIPBENCH_SHADOWS"] == "x" for environment in found)


def test_each_service_gets_its_own_secrets_alone_and_none_is_written_down() -> None:
    got = {}
    for name, service in read_compose()["services"].items():
        given = service.get("environment", {})
        got[name] = {variable for value in given.values() for variable in re.findall(r"\$\{(\w+)", value)}
        assert [key for key in given if key in IS_SECRET and "${" not in given[key]] == []
    assert got == {
        "postgres": {"POSTGRES_PASSWORD"},
        "ollama": set(),
        "mlflow": {"POSTGRES_PASSWORD"},
        "serve": {"POSTGRES_PASSWORD", "TIPBENCH_ALLOWED_HOSTS", "TIPBENCH_ADMIN_TOKEN", METRICS},
        "recommend": {"POSTGRES_PASSWORD", "TIPBENCH_SERVING_KEY", METRICS},
    }
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_jobs_outlive_the_admin_servers_unit() -> None:
    unit = read_unit(SERVE)
    assert unit["KillMode"] == ["process"]
    assert unit["OOMPolicy"] == ["continue"]
    assert "DynamicUser" not in unit
    assert "TMPDIR=/var/lib/tipbench/tmp" in unit["Environment"]
    assert unit["StateDirectory"] == ["tipbench tipbench/tmp"]


@pytest.mark.parametrize("name", OURS)
def test_our_services_are_confined_and_reached_through_the_proxy_alone(name: str) -> None:
    service = read_compose()["services"][name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["networks"] == ["tipbench"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert "user" not in service, "the image's own, which is not root"


def test_the_trusted_proxy_is_the_networks_gateway() -> None:
    compose = read_compose()
    (network,) = compose["networks"]["tipbench"]["ipam"]["config"]
    for name in ("serve", "recommend"):
        assert compose["services"][name]["environment"]["TIPBENCH_TRUSTED_PROXIES"] == network["gateway"]


def test_the_image_is_of_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == __version__
    services = read_compose()["services"]
    assert {services[name]["image"] for name in OURS} == {f"tipbench:{version}"}
    assert f"--tag tipbench:{version} " in (DEPLOY / "Dockerfile").read_text()
    assert not [service["image"] for service in services.values() if re.fullmatch(r"[^:]+(:latest)?", service["image"])]


def test_the_image_is_built_from_the_lock_and_run_by_nobody_special() -> None:
    build, final = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").split("\nFROM ")[1:]
    installs = re.findall(r"pip install .*", build)
    assert ["--require-hashes" in one or "--no-deps --no-build-isolation" in one for one in map(_words, installs)] == [
        True
    ] * 3
    users = re.findall(r"^USER (.*)", final, re.MULTILINE)
    assert users == ["10001:10001"]
    assert final.index("USER") < final.index("\nCMD")
    assert "HEALTHCHECK" in final
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", build + final, re.MULTILINE)
    allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    assert {f"!{name}" for line in copied for name in line.split()} == {one for one in allowed if one[0] == "!"}
    assert allowed[0] == "*"


def _words(command: str) -> str:
    return " ".join(command.split())


@pytest.mark.parametrize("path", [SERVE, RECOMMEND], ids=lambda path: path.stem)
def test_units_keep_to_what_they_may_write(path: Path) -> None:
    unit = read_unit(path)
    assert unit["ProtectSystem"] == ["strict"]
    assert unit["NoNewPrivileges"] == ["yes"]
    assert unit["User"] == ["tipbench"]
    assert "ReadWritePaths" not in unit
