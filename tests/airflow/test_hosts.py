"""Pools by host, and models spread over hosts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.engines.stand_in import StandIn, free_address
from tipbench.airflow.host_assignment import Hosts
from tipbench.airflow.hosts import DEFAULT_HOST, collect_task, label_of, pool_name, spread
from tipbench.airflow.planning import planned_request, suite_digest
from tipbench.airflow.request import read_conf
from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.options import Options
from tipbench.bench.suites.load import load_suite
from tipbench.core.settings import Settings


@pytest.mark.parametrize(
    ("url", "pool"),
    [
        ("http://localhost:11434", "ollama_localhost_11434"),
        ("http://127.0.0.1:11434/", "ollama_localhost_11434"),
        ("https://gpu-1.lab.example:443", "ollama_gpu_1_lab_example_443"),
        ("http://GPU1:11434", "ollama_gpu1_11434"),
        ("http://gpu1", "ollama_gpu1_80"),
        ("http://[::1]:11434", "ollama_localhost_11434"),
        ("http://proxy/ollama-2", "ollama_proxy_80_ollama_2"),
    ],
)
def test_every_spelling_of_a_host_has_one_pool(url: str, pool: str) -> None:
    assert pool_name(url) == pool


def test_the_first_hosts_task_has_the_plain_name() -> None:
    assert [collect_task(number, f"http://gpu{number}:1") for number in (0, 1)] == ["collect", "collect_gpu1_1"]


def test_the_largest_models_go_to_different_hosts() -> None:
    sizes = {"small": 1, "large": 9, "medium": 5, "other": 4}
    everywhere = dict.fromkeys(sizes, (0, 1))
    assert spread(sizes, everywhere, 2) == [["small", "large"], ["medium", "other"]]


def test_a_model_goes_where_it_is() -> None:
    assert spread({"a": 1, "b": 1}, {"a": (1,), "b": (1,)}, 2) == [[], ["a", "b"]]


@given(
    st.dictionaries(st.text(min_size=1), st.tuples(st.integers(0, 10**12), st.sets(st.integers(0, 4), min_size=1))),
)
def test_every_model_is_on_one_host_that_can_take_it(models: dict[str, tuple[int, set[int]]]) -> None:
    sizes = {name: size for name, (size, _) in models.items()}
    able = {name: sorted(hosts) for name, (_, hosts) in models.items()}
    shares = spread(sizes, able, 5)
    assert sorted(name for share in shares for name in share) == sorted(models)
    assert all(number in able[name] for number, share in enumerate(shares) for name in share)
    for share in shares:
        assert share == [name for name in models if name in share], "in the order that they were named in"


@given(st.text(max_size=400))
def test_a_tasks_label_fits_into_airflows_database(model: str) -> None:
    label = label_of(model)
    assert len(label) <= 250
    assert "\x1b" not in label
    assert "\x00" not in label


def test_a_usual_name_is_its_own_label() -> None:
    assert label_of("qwen2.5:0.5b") == "qwen2.5:0.5b"


def test_hosts_never_come_from_the_environment_or_files_of_whoever_runs_a_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each worker has its own; a run's hosts are those of the DAG and its conf."""
    monkeypatch.chdir(tmp_path)
    Path("tipbench.toml").write_text('[options]\nollama_url = "http://folder:1"\nn_tips = 2\n')
    with StandIn() as own:
        monkeypatch.setenv("OLLAMA_HOST", own.url)
        monkeypatch.setenv("TIPBENCH_OLLAMA_URL", own.url)
        for host in (DEFAULT_HOST, free_address()):
            options = read_conf({}, {"ollama_url": host}).options
            assert (options.ollama_url, options.n_tips) == (host, 5)
            with open_engines(options, Settings()) as engines:
                assert engines.named("ollama").address == host
            planned = {"options": options.model_dump(mode="json"), "suite_digest": suite_digest(load_suite("tip"))}
            with open_engines(planned_request(planned)[0], Settings()) as engines:
                assert engines.named("ollama").address == host
        hosts = Hosts(Options(), [free_address()], Settings())
        assert hosts.find_model("qwen2.5:0.5b", 0, 4.0, []) is None
        assert 0 in hosts.unreachable
        assert own.asked == []
    assert DEFAULT_HOST == "http://localhost:11434"
