"""A table of its own, with the rules of the other one."""

import re
from pathlib import Path

import pytest

from tipbench.airflow.remote.client import TABLE
from tipbench.core.settings import Setting, Settings


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: str(setting.name))
def test_a_setting_is_its_default_until_it_is_given(setting: Setting) -> None:
    assert Settings({}).value(setting) == Settings({setting.name: " "}).value(setting) == setting.default
    assert Settings({setting.name: " given "}).value(setting) == "given"
    assert setting.help.endswith(".")


def test_what_must_stay_secret_is_marked_so_and_reaches_neither_judges_nor_jobs(tmp_path: Path) -> None:
    secret = {setting.name for setting in TABLE if setting.secret}
    assert secret == {one.name for one in TABLE if re.search("PASSWORD|TOKEN|USERNAME", one.name)}
    settings = Settings({setting.name: "hunter2" for setting in TABLE})
    assert settings.judge_environment() == {}
    for environment in (settings.environment_without_secrets(), settings.job_environment(tmp_path)):
        assert secret.isdisjoint(environment)
        assert "TIPBENCH_AIRFLOW_URL" in environment


def test_the_docs_have_every_one() -> None:
    text = (Path(__file__).parents[3] / "docs" / "airflow.md").read_text(encoding="utf-8")
    assert [s.name for s in TABLE if f"| `{s.name}` | {f'`{s.default}`' if s.default else ''} |" not in text] == []
