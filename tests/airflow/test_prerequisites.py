"""MLflow and Ollama as they are seen from here."""

from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tipbench.airflow.prerequisites import check_mlflow, check_ollama
from tipbench.core.settings import Settings


def test_an_mlflow_that_answers_comes_with_what_workers_need() -> None:
    with StandIn() as mlflow:
        mlflow.on("/api/2.0/mlflow/experiments/search", Reply({"experiments": []}))
        found, needed = check_mlflow(Settings({"MLFLOW_TRACKING_URI": mlflow.url}))
    assert (found.good, needed.good) == (True, None)
    assert found.text == f"{mlflow.url}: 0 experiments"
    assert f"MLFLOW_TRACKING_URI={mlflow.url}" in needed.text


def test_credentials_in_the_address_of_an_mlflow_are_not_shown() -> None:
    with StandIn() as mlflow:
        mlflow.on("/api/2.0/mlflow/experiments/search", Reply({"experiments": []}))
        address = mlflow.url.replace("://", "://me:s3cret@")
        checks = list(check_mlflow(Settings({"MLFLOW_TRACKING_URI": address})))
    assert len(checks) == 2
    assert not [check for check in checks if "s3cret" in check.text]


def test_an_mlflow_that_is_away_is_a_fault() -> None:
    (check,) = check_mlflow(Settings({"MLFLOW_TRACKING_URI": free_address()}))
    assert check.good is False


def test_an_ollama_tells_its_models() -> None:
    with StandIn() as ollama:
        ollama.on("/api/tags", Reply({"models": [{"name": "a:1b"}, {"name": "b:2b"}]}))
        ollama.on("/api/show", Reply({"details": {}, "model_info": {}}))
        check, models = check_ollama(ollama.url, Settings({}))
    assert (check.good, check.text) == (True, f"{ollama.url}: 2 models")
    assert models == ["a:1b", "b:2b"]


def test_one_model_is_not_models() -> None:
    with StandIn() as ollama:
        ollama.on("/api/tags", Reply({"models": [{"name": "a:1b"}]}))
        ollama.on("/api/show", Reply({"details": {}, "model_info": {}}))
        assert check_ollama(ollama.url, Settings({}))[0].text == f"{ollama.url}: 1 model"


def test_an_ollama_without_models_or_out_of_sight_is_no_fault() -> None:
    with StandIn() as ollama:
        ollama.on("/api/tags", Reply({"models": []}))
        assert check_ollama(ollama.url, Settings({}))[0].good is None
    check, models = check_ollama(free_address(), Settings({}))
    assert (check.good, models) == (None, [])
    assert "Workers may be able to reach it" in check.text
