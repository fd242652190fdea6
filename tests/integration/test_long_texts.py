"""An ugly answer of 20,000 characters comes back from MLflow character for character, by files and by tags.

In tags it does so on PostgreSQL: see test_mlflow_on_postgres.py.
"""

from pathlib import Path

from tests.integration.collecting import assert_an_ugly_answer_comes_back
from tests.integration.mlflow_server import MlflowServer


def test_nothing_of_a_long_and_ugly_answer_is_lost_in_process(tmp_path: Path) -> None:
    assert_an_ugly_answer_comes_back(tmp_path, f"sqlite:///{tmp_path / 'mlflow.db'}", kept_in="file")


def test_nothing_of_a_long_and_ugly_answer_is_lost_over_rest(mlflow: MlflowServer, tmp_path: Path) -> None:
    assert_an_ugly_answer_comes_back(tmp_path, mlflow.url, kept_in="file")
