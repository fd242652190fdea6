"""No user name and no password in what a job is asked to do."""

import pytest

from tipbench.bench.options import make_options
from tipbench.core.errors import InvalidInput
from tipbench.server.jobs.simulation_asked import refuse_credentials


@pytest.mark.parametrize(
    "given",
    [
        {"ollama_url": "http://me:s3cret@host:1"},
        {"ollama_url": "http://me:s3/cret@host"},
        {"mlflow_url": "https://s3cret@host/mlflow"},
        {"mlflow_url": "postgresql://me:s3cret@host/db"},
    ],
)
def test_credentials_are_refused_and_not_repeated(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="contains a user name or password") as refused:
        refuse_credentials(make_options(given))
    assert "s3" not in str(refused.value)
    assert "host" in str(refused.value)


@pytest.mark.parametrize("url", [None, "http://host:5000/mlflow", "sqlite:////home/me@work/m.db"])
def test_other_addresses_pass(url: str | None) -> None:
    refuse_credentials(make_options({"mlflow_url": url}))
