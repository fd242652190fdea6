"""What can be run is told before a job begins, with everything that is wrong at once."""

from pathlib import Path

import pytest

from tests.bench.engines.gguf_files import gguf
from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tests.integration.command import tipbench
from tests.server.views.conftest import EXPERIMENT
from tipbench.bench.engines.weights import weights_path
from tipbench.bench.options import Options
from tipbench.core.errors import InvalidInput, Problems
from tipbench.server.views.run_requests import RunRequests
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider


@pytest.fixture
def requests(stores: StoreProvider, snapshots: SnapshotMemoryCache) -> RunRequests:
    return RunRequests(stores, snapshots)


def refused(requests: RunRequests, **given: object) -> str:
    with pytest.raises(Problems) as caught:
        requests.validate({"models": "scripted/a", **given})
    return "\n".join(caught.value.problems)


def test_a_good_request_goes_to_this_servers_store(requests: RunRequests, address: str) -> None:
    options = requests.validate({"models": "scripted/a", "n_scenarios": 2})
    assert (options.mlflow_url, options.experiment, options.prompts) == (
        address,
        "tip-bench-auto",
        "v1,v2-mentor,v3-few-shot",
    )


def test_every_problem_is_told_at_once(requests: RunRequests, tmp_path: Path) -> None:
    (tmp_path / "large-9b.yaml").write_text("parameters: 9000000000\n")
    (tmp_path / "gone.yaml").write_text("missing: true\n")
    told = refused(
        requests,
        models=f"scripted/{tmp_path / 'large-9b.yaml'},scripted/{tmp_path / 'gone.yaml'}",
        prompts="v1,v9,v8",
        n_scenarios=99,
        judge="nobody",
    )
    for part in ("9.00 billion", "gone.yaml", "'v9'", "'v8'", "99", "nobody"):
        assert part in told


def test_what_is_wrong_with_one_key_does_not_hide_another(requests: RunRequests) -> None:
    told = refused(requests, modles="x", prompts="v7", n_scenarios=99, ollama_url="http://h:1?token=s3cret")
    for part in ("modles", "'v7'", "99", "ollama_url"):
        assert part in told
    assert "s3cret" not in told
    only_the_models = refused(requests, models=5)
    assert only_the_models.count("\n") == 0, "nobody asked for the default models"


def test_unknown_keys_and_bad_values_are_told_by_name(requests: RunRequests) -> None:
    told = refused(requests, modles="x", n_tips=0, temperature="hot", seed=-1)
    for part in ("modles: unknown key; did you mean models?", "n_tips", "temperature", "seed"):
        assert part in told


@pytest.mark.parametrize("key", ["ollama_url", "mlflow_url"])
def test_passwords_have_no_place_in_a_job(requests: RunRequests, key: str) -> None:
    told = refused(requests, **{key: "http://me:s3cret@host"})
    assert key in told
    assert "s3cret" not in told


def test_results_go_where_this_server_reads(requests: RunRequests, address: str) -> None:
    assert "--mlflow-url http://elsewhere:5000" in refused(requests, mlflow_url="http://elsewhere:5000")
    assert requests.validate({"models": "scripted/a", "mlflow_url": address}).mlflow_url == address


def test_an_engine_that_is_away_is_a_problem_like_others(requests: RunRequests) -> None:
    told = refused(requests, models="qwen2.5:0.5b,embedded/none:1b", ollama_url=free_address(), prompts="nine")
    for part in ("nine", "can't be reached", "embedded/none:1b"):
        assert part in told


def test_an_experiment_of_somebody_else_is_left_alone(
    requests: RunRequests, tmp_path: Path, stores: StoreProvider
) -> None:
    stores.store().ensure_experiment("somebody-elses", {})
    assert "not made by tipbench" in refused(requests, experiment="somebody-elses")
    stores.store().ensure_experiment("summary-1", {"tipbench.suite": "summary"})
    assert "belongs to suite 'summary'" in refused(requests, experiment="summary-1")


def test_an_estimate_knows_what_is_stored(requests: RunRequests) -> None:
    asked = {"models": "scripted/a,scripted/c", "prompts": "v1", "n_tips": 2, "experiment": EXPERIMENT}
    found = requests.estimate(asked)
    assert (found.cells, found.stored, found.to_do) == (16, 8, 8)
    done = requests.estimate({**asked, "models": "scripted/a"})
    assert (done.to_do, done.seconds) == (0, 0)


def test_choices_name_models_prompts_and_judges(
    requests: RunRequests, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = weights_path(home / "weights", "smollm2:135m")
    weights.parent.mkdir()
    weights.write_bytes(gguf())
    choices = requests.choices(ollama_url=free_address())
    assert list(choices.prompts) == ["v1", "v2-mentor", "v3-few-shot"]
    assert all(choices.prompts.values())
    assert (choices.scenarios, choices.prefix, choices.judges) == (8, "tip-bench-", ["lexical"])
    engines = {one.engine: one for one in choices.engines}
    assert [model.name for model in engines["embedded"].models] == ["embedded/smollm2:135m"]
    assert engines["ollama"].problem
    monkeypatch.setenv("TIPBENCH_JUDGE_COMMAND", "./judge")
    assert requests.choices(ollama_url=free_address()).judges == ["lexical", "command"]


def test_a_request_points_only_where_an_admin_allows_it(requests: RunRequests, monkeypatch: pytest.MonkeyPatch) -> None:
    with StandIn() as inside, StandIn() as allowed:
        allowed.on("/api/tags", Reply({"models": []}))
        monkeypatch.setenv("TIPBENCH_ALLOWED_OLLAMA_URLS", f"http://gpu:11434, {allowed.url}/")
        told = refused(requests, models="qwen2.5:0.5b", ollama_url=inside.url)
        assert f"ollama_url: this server may not use {inside.url}; use one of http://127.0.0.1" in told
        with pytest.raises(InvalidInput, match="TIPBENCH_ALLOWED_OLLAMA_URLS"):
            requests.choices(ollama_url=f"{allowed.url},{inside.url}")
        for trick in ("@", "?@", "#@"):
            with pytest.raises(InvalidInput, match="ollama_url"):
                requests.choices(ollama_url=f"{inside.url}/{trick}{allowed.url.removeprefix('http://')}")
        assert inside.asked == []
        assert requests.choices(ollama_url=allowed.url).engines[0].problem == ""


@pytest.mark.parametrize("name", ["OLLAMA_HOST", "TIPBENCH_OLLAMA_URL"])
def test_the_panels_default_is_the_ollama_of_the_servers_environment(
    name: str, requests: RunRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandIn() as ours, StandIn() as other:
        ours.on("/api/tags", Reply({"models": []}))
        monkeypatch.setenv(name, ours.url)
        choices = requests.choices()
        assert (choices.defaults.ollama_url, choices.engines[0].address) == (ours.url, ours.url)
        assert requests.validate({"models": "scripted/a"}).ollama_url == ours.url
        assert requests.validate_judge(EXPERIMENT, "lexical").ollama_url == ours.url
        monkeypatch.setenv("TIPBENCH_ALLOWED_OLLAMA_URLS", "http://gpu:11434")
        assert requests.validate({"models": "scripted/a"}).ollama_url == ours.url, "an admin set it"
        assert requests.choices(ollama_url=ours.url).engines[0].problem == ""
        assert "may not use http://localhost:11434" in refused(requests, ollama_url="http://localhost:11434")
        assert "may not use" in refused(requests, ollama_url=other.url)


def test_the_panels_defaults_are_those_of_the_machines_file(
    stores: StoreProvider, snapshots: SnapshotMemoryCache, tmp_path: Path, address: str
) -> None:
    file = Path(stores.settings.file_paths[1])
    file.parent.mkdir(parents=True)
    file.write_text('[options]\nmodels = "scripted/z"\nn_tips = 2\nmlflow_url = "http://elsewhere"\nprompts = "v1"\n')
    file.chmod(0o600)
    requests = RunRequests(stores, snapshots)
    assert (requests.choices(with_models=False).defaults.models, requests.choices().defaults.n_tips) == (
        "scripted/z",
        2,
    )
    options = requests.validate({"n_tips": 4})
    assert (options.models, options.n_tips, options.prompts, options.mlflow_url) == ("scripted/z", 4, "v1", address)


def test_a_variable_of_the_server_that_can_not_be_used_is_named(
    requests: RunRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "a b")
    with pytest.raises(InvalidInput, match="OLLAMA_HOST is 'a b'"):
        requests.validate({"models": "scripted/a"})
    assert requests.validate({"models": "scripted/a", "ollama_url": "http://gpu:1"}).ollama_url == "http://gpu:1"


def test_without_a_store_everything_is_to_be_done(stores: StoreProvider, tmp_path: Path) -> None:
    nowhere = StoreProvider(f"sqlite:///{tmp_path / 'none.db'}", stores.settings, stores.clock, stores.new_id)
    found = RunRequests(nowhere, SnapshotMemoryCache(nowhere)).estimate({"models": "scripted/a", "prompts": "v1"})
    assert (found.cells, found.stored) == (8, 0)
    assert not (tmp_path / "none.db").exists()
    assert tipbench("experiments").status == 2  # nor anywhere else


@pytest.fixture
def from_afar(stores: StoreProvider, snapshots: SnapshotMemoryCache) -> RunRequests:
    return RunRequests(stores, snapshots, runs_locally=False)


def test_from_afar_models_and_judges_are_left_to_those_who_have_them(from_afar: RunRequests) -> None:
    asked = {"models": "qwen2.5:900b,embedded/none", "ollama_url": free_address(), "judge": "webhook"}
    assert from_afar.validate(asked).judge == "webhook"


def test_from_afar_the_hosts_are_never_those_of_the_servers_environment(
    from_afar: RunRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "here")
    monkeypatch.setenv("TIPBENCH_OLLAMA_URL", "http://here:1")
    assert from_afar.validate({"models": "m"}).ollama_url == Options.model_fields["ollama_url"].default
    assert from_afar.choices(with_models=False).defaults.ollama_url == Options.model_fields["ollama_url"].default
    assert "ollama_url" not in from_afar.validate_judge(EXPERIMENT, "webhook").model_fields_set


def test_from_afar_all_else_is_told_at_once(from_afar: RunRequests) -> None:
    told = refused(from_afar, prompts="v9", n_scenarios=99, judge="nobody", ollama_url="http://me:s3cret@h", modles=1)
    for part in ("'v9'", "99", "nobody", "ollama_url", "modles"):
        assert part in told
    assert "not made by tipbench" not in told


def test_from_afar_an_estimate_is_an_upper_bound(from_afar: RunRequests) -> None:
    asked = {"models": "qwen2.5:0.5b,other:7b", "prompts": "v1", "ollama_url": free_address()}
    found = from_afar.estimate(asked)
    assert (found.cells, found.to_do, found.at_most) == (16, 16, True)
    assert found.seconds > from_afar.estimate({**asked, "models": "qwen2.5:0.5b,other:1b"}).seconds


def test_from_afar_every_judge_and_the_ollama_can_be_chosen(from_afar: RunRequests) -> None:
    choices = from_afar.choices(ollama_url=free_address())
    assert choices.judges == ["lexical", "agent", "command", "webhook", "model"]
    assert [one.engine for one in choices.engines] == ["ollama"]
    assert choices.engines[0].problem


def test_from_afar_each_ollama_has_its_models(from_afar: RunRequests) -> None:
    several = [free_address(), free_address()]
    assert [one.address for one in from_afar.choices(ollama_url=",".join(several)).engines] == several
