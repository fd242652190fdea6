"""What the docs say is true: no option, setting or decision without its line."""

import re
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

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


def test_every_metric_is_documented_with_its_labels() -> None:
    """In the code they are written as `Family(name, help, labels, kind)`."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("metrics.py"))
    written = re.findall(r'Family\(\s*"(\w+)",\s*".*?",\s*\((.*?)\)(?:,\s*"(\w+)")?,?\s*\)', sources, re.DOTALL)
    families = {name: (kind or "counter", re.findall(r'"(\w+)"', labels)) for name, labels, kind in written}
    docs = _read("docs/server-reference.md") + _read("docs/recommender-reference.md")
    rows = re.findall(r"^\| `(tipbench_\w+)` \| (counter|gauge|histogram) \| ([\w, ]*?) ?\|", docs, re.MULTILINE)
    assert len(families) > 15
    assert {name: (kind, labels.split(", ") if labels else []) for name, kind, labels in rows} == families


def test_every_decision_is_in_the_index() -> None:
    index = _read("docs/decisions/README.md")
    folder = ROOT / "docs" / "decisions"
    assert [path.name for path in folder.glob("0*.md") if f"({path.name})" not in index] == []


def test_ci_runs_the_readmes_test_command() -> None:
    ci = _read(".ci/run").splitlines()
    assert "make test" in ci
    assert "make check" in ci
    assert re.search(r"^make test\b", _read("README.md"), re.MULTILINE)


LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-airflow.lock")


def _pins(name: str) -> dict[str, str]:
    """Versions by package; every line must be a comment, a pin or a hash."""
    pins: dict[str, str] = {}
    for line in _read(name).splitlines():
        if pin := re.fullmatch(r"([a-z0-9.-]+)==([A-Za-z0-9.+]+)( ; [^\\]+)? \\", line):
            pins[pin[1]] = pin[2]
        else:
            assert re.fullmatch(r"#.*|    --hash=sha256:[0-9a-f]{64}( \\)?", line), f"{name}: {line}"
    return pins


def test_locks_are_pins_with_hashes_and_name_no_package_index() -> None:
    for name in LOCKS:
        pins = _pins(name)
        assert list(pins) == sorted(pins)
        assert {"hatchling", "editables", "uv"} <= pins.keys(), "what installs the project is locked too"
        assert not {"tipbench", "torch"} & pins.keys()
        assert _read(name).count("\n    --hash=") >= len(pins)
        assert "://" not in _read(name)


def test_locks_hold_what_the_project_asks_for() -> None:
    """A dependency that was added without 'make lock' is not in them."""
    project = tomllib.loads(_read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    for name, chosen in (
        ("requirements.lock", set(extras) - {"airflow", "dev"}),
        ("requirements-dev.lock", set(extras) - {"airflow"}),
        ("requirements-airflow.lock", {"airflow", "embedded"}),
    ):
        pins = _pins(name)
        asked = [Requirement(one) for one in chain(project["dependencies"], *(extras[extra] for extra in chosen))]
        assert [str(one) for one in asked if pins.get(one.name, "none") not in one.specifier] == []


def test_environments_have_one_version_of_a_package() -> None:
    """But for what Airflow asks for: an older FastAPI, and its exporters' own release of the telemetry's protocol."""
    production, ours, airflows = map(_pins, LOCKS)
    assert production.items() <= ours.items()
    different = {name for name in ours.keys() & airflows.keys() if ours[name] != airflows[name]}
    assert different <= {"fastapi", "opentelemetry-proto"}


def test_the_extra_and_the_lock_name_one_version_of_airflow() -> None:
    extras = tomllib.loads(_read("pyproject.toml"))["project"]["optional-dependencies"]
    assert extras["airflow"] == [f"apache-airflow=={_pins('requirements-airflow.lock')['apache-airflow']}"]


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} → {target}"
