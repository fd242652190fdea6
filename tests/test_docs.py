"""What the docs say is true: no option, setting or decision without its line."""

import re
import tomllib
from pathlib import Path

from tipbench.bench.options import option_fields
from tipbench.core.settings import TABLE

ROOT = Path(__file__).parent.parent


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_option_and_its_default_is_documented() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| \w+ \| (.*?) \|", _read("docs/options.md"), re.MULTILINE))
    shown = {f.key: "" if f.default is None else f"`{f.default}`".lower() for f in option_fields()}
    assert {key: default.lower() for key, default in rows.items()} == shown


def test_every_setting_is_documented() -> None:
    text = _read("docs/options.md")
    assert [s.name for s in TABLE if f"| `{s.name}` | {f'`{s.default}`' if s.default else ''} |" not in text] == []


def test_every_decision_is_in_the_index() -> None:
    index = _read("docs/decisions/README.md")
    folder = ROOT / "docs" / "decisions"
    assert [path.name for path in folder.glob("0*.md") if f"({path.name})" not in index] == []


def test_ci_runs_the_readmes_test_command() -> None:
    ci = _read(".ci/run").splitlines()
    assert "make test" in ci
    assert "make check" in ci
    assert re.search(r"^make test\b", _read("README.md"), re.MULTILINE)


def _pins(name: str) -> dict[str, str]:
    lines = [line for line in _read(name).splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+_-]+", line)] == []
    return dict(line.split("==") for line in lines)


def test_constraints_are_plain_pins() -> None:
    assert _pins("constraints.txt")


def test_constraints_of_airflow_are_plain_sorted_pins_without_ourselves() -> None:
    pins = list(_pins("constraints-airflow.txt"))
    assert pins == sorted(pins)
    assert "tipbench" not in pins


def test_the_extra_and_the_constraints_name_one_version_of_airflow() -> None:
    extras = tomllib.loads(_read("pyproject.toml"))["project"]["optional-dependencies"]
    assert extras["airflow"] == [f"apache-airflow=={_pins('constraints-airflow.txt')['apache-airflow']}"]


def test_both_environments_have_one_version_of_what_airflow_leaves_open() -> None:
    """It asks for an older FastAPI, and its exporters for their own release of the telemetry's protocol."""
    ours, airflows = _pins("constraints.txt"), _pins("constraints-airflow.txt")
    different = {name for name in ours.keys() & airflows.keys() if ours[name] != airflows[name]}
    assert different <= {"fastapi", "opentelemetry-proto"}


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} → {target}"
