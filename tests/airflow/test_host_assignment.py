"""Which of the DAG's hosts a run may use."""

import pytest

from tipbench.airflow.host_assignment import host_indices
from tipbench.bench.options import Options
from tipbench.core.errors import InvalidInput

HOSTS = ("http://gpu1:11434", "http://gpu2:11434")


def test_a_run_uses_the_hosts_that_it_names() -> None:
    assert host_indices(Options(ollama_url=",".join(HOSTS)), HOSTS) == [0, 1]
    assert host_indices(Options(ollama_url=HOSTS[1]), HOSTS) == [1]


def test_a_host_without_a_pool_is_refused_by_its_address() -> None:
    told = r"the DAG has no pool for http://gpu7:11434, only for http://gpu1:11434, http://gpu2:11434"
    with pytest.raises(InvalidInput, match=told):
        host_indices(Options(ollama_url="http://gpu7:11434"), HOSTS)
