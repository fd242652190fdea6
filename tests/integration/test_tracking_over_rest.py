"""The store's whole contract against a real MLflow server: with served artifacts, and with files it can't reach."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from tests.bench.tracking.store_contract import TEXTS, UGLY, StoreContract, a_draft
from tests.integration.command import tipbench
from tests.integration.mlflow_server import MlflowServer, MlflowServerError
from tipbench.bench.tracking import mlflow_client
from tipbench.bench.tracking.interface import Experiment, Metric
from tipbench.bench.tracking.mlflow_client import MlflowClient
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import StoredDataDamaged, TrackingError, TrackingRefused
from tipbench.core.settings import Settings
from tipbench.core.untrusted import storable

PREFIX = "/mlflow"
ALLOWED = "bench.example"


@pytest.fixture(scope="module")
def with_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    """Also behind a prefix, and taking one host name only."""
    folder = tmp_path_factory.mktemp("files")
    with MlflowServer.start(folder, artifacts="file", static_prefix=PREFIX, allowed_hosts=ALLOWED) as server:
        yield server


def opened(url: str, **environment: str) -> RunStore:
    return RunStore(MlflowClient(url, Settings(environment)))


@pytest.fixture
def experiment(store: RunStore, request: pytest.FixtureRequest) -> Experiment:
    return store.ensure_experiment(f"tip-bench {request.node.nodeid}"[-200:], {})


class TestServedArtifacts(StoreContract):
    @pytest.fixture
    def store(self, mlflow: MlflowServer) -> Iterator[RunStore]:
        store = opened(mlflow.url)
        yield store
        store.close()

    def test_texts_are_files_of_the_run(self, store: RunStore, experiment: Experiment, mlflow: MlflowServer) -> None:
        run_id = store.write_run(experiment, a_draft(texts=TEXTS))
        run = self.only_run(store, experiment)
        assert not [key for key in run.tags if key.startswith("artifact:")]
        listed = httpx.get(f"{mlflow.url}/api/2.0/mlflow/artifacts/list", params={"run_id": run_id}).json()
        assert [file["path"] for file in listed["files"]] == sorted(TEXTS)

    def test_an_altered_file_is_found_out(self, store: RunStore, experiment: Experiment) -> None:
        store.write_run(experiment, a_draft(texts=TEXTS))
        run = self.only_run(store, experiment)
        store._api.put_files(run.artifact_uri, {"raw.txt": b"something else"})
        with pytest.raises(StoredDataDamaged):
            store.text(run, "raw.txt")
        with pytest.raises(TrackingError):
            store._api.get_file(run.artifact_uri, "none.txt")

    def test_all_pages_are_read(self, store: RunStore, experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mlflow_client, "_PAGE", 3)
        for number in range(7):  # two of each start time
            store.write_run(experiment, a_draft(1_000 + number // 2, params={"number": str(number)}))
        runs = store.runs(experiment, {})
        assert sorted(run.params["number"] for run in runs) == list("0123456")
        assert [run.started_ms for run in runs] == sorted(run.started_ms for run in runs)

    def test_why_a_higher_step_is_needed(self, store: RunStore, experiment: Experiment) -> None:
        """MLflow itself goes on showing the higher value, where timestamp and step are the same."""
        run_id = store.write_run(experiment, a_draft(metrics={"composite": 17.0}))
        store._api.log_batch(run_id, [Metric("composite", 2.0, 1_500, 0)], {}, {})
        assert self.only_run(store, experiment).metrics["composite"] == 17.0

    def test_the_real_host_check(self, mlflow: MlflowServer) -> None:
        refused = opened(mlflow.url, TIPBENCH_MLFLOW_HOST="evil.example")
        with pytest.raises(
            TrackingRefused, match=r"--allowed-hosts 'evil.example,localhost:\*'.*MLFLOW_HOST=localhost"
        ):
            refused.experiments("")
        refused.close()

    def test_a_wrong_prefix(self, mlflow: MlflowServer) -> None:
        wrong = opened(f"{mlflow.url}/bench")
        with pytest.raises(TrackingError, match="--static-prefix"):
            wrong.experiments("")
        wrong.close()

    def test_texts_are_tags_beside_the_files_where_that_is_asked_for(
        self, mlflow: MlflowServer, experiment: Experiment
    ) -> None:
        asked = RunStore(MlflowClient(mlflow.url, Settings({})), also_tagged=["raw.txt"])
        asked.write_run(experiment, a_draft(texts=TEXTS))
        run = self.only_run(asked, experiment)
        assert run.tags["artifact:raw.txt"] == storable(UGLY).text[:5_000]
        assert json.loads(run.tags["tipbench.text:raw.txt"])["kept_in"] == "file"
        assert asked.text(run, "raw.txt") == UGLY
        asked.close()


class TestFileArtifacts(StoreContract):
    @pytest.fixture
    def store(self, with_files: MlflowServer) -> Iterator[RunStore]:
        store = opened(with_files.url, TIPBENCH_MLFLOW_HOST=ALLOWED)
        yield store
        store.close()

    def test_texts_are_tags_in_numbered_parts(self, store: RunStore, experiment: Experiment) -> None:
        store.write_run(experiment, a_draft(texts=TEXTS))
        run = self.only_run(store, experiment)
        note = json.loads(run.tags["tipbench.text:raw.txt"])
        parts = ["artifact:raw.txt", *(f"artifact:raw.txt:{n}" for n in range(2, note["parts"] + 1))]
        assert note["kept_in"] == "tags"
        assert len(parts) > 4
        assert [key for key in run.tags if key.startswith("artifact:raw.txt")] == sorted(parts)
        assert store.text(run, "raw.txt") == UGLY
        assert not Path(run.artifact_uri).exists() or not list(Path(run.artifact_uri).iterdir())
        assert store.files_refused == ""  # it is so by the server's set-up, nothing was refused

    def test_a_lost_part_is_found_out(self, store: RunStore, experiment: Experiment) -> None:
        run_id = store.write_run(experiment, a_draft(texts=TEXTS))
        cast(MlflowClient, store._api)._post("runs/delete-tag", {"run_id": run_id, "key": "artifact:raw.txt:2"})
        with pytest.raises(StoredDataDamaged, match=r"artifact:raw\.txt:2, a part of raw\.txt, is gone"):
            store.text(self.only_run(store, experiment), "raw.txt")

    def test_the_host_check_refuses_and_the_override_passes(self, with_files: MlflowServer, store: RunStore) -> None:
        plain = opened(with_files.url)
        with pytest.raises(TrackingRefused, match="refuses the host name"):
            plain.experiments("")
        plain.close()
        assert httpx.get(f"{with_files.url}/health").status_code == 200  # which is why health proves nothing
        assert [e.name for e in store.experiments("Default")] == ["Default"]

    def test_without_the_prefix_it_is_found_there(self, with_files: MlflowServer, experiment: Experiment) -> None:
        bare_url = with_files.url.removesuffix(PREFIX)
        bare = opened(bare_url, TIPBENCH_MLFLOW_HOST=ALLOWED)
        assert bare.find_experiment(experiment.name) == experiment
        assert (bare.address, bare.under_prefix) == (bare_url, with_files.url)
        bare.close()

    def test_the_exact_hosts_of_the_message_let_the_name_in(self, with_files: MlflowServer) -> None:
        """What the message of a refused name says, MLflow's own check takes; a real start would cost seconds."""
        from mlflow.server.security_utils import is_allowed_host_header

        named = opened(with_files.url, TIPBENCH_MLFLOW_HOST="box.example:5000")
        with pytest.raises(TrackingRefused) as caught:
            named.experiments("")
        named.close()
        [hosts] = re.findall(r"MLFLOW_SERVER_ALLOWED_HOSTS=([^;]+);", str(caught.value))
        assert is_allowed_host_header(hosts.split(","), "box.example:5000")
        assert is_allowed_host_header(hosts.split(","), "localhost:5000")
        assert not is_allowed_host_header(hosts.split(","), "evil.example")

    def test_a_collection_without_the_prefix_says_which_address_to_set(
        self, with_files: MlflowServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TIPBENCH_MLFLOW_HOST", ALLOWED)
        bare_url = with_files.url.removesuffix(PREFIX)
        where = ("--experiment", "tip-bench-prefix", "--mlflow-url")
        done = tipbench(
            *("collect", "--models", "scripted/a", "--prompts", "v1", "--n-scenarios", "1", *where, bare_url)
        )
        assert done.status == 0, done.err
        assert f"MLflow was found at {with_files.url}, not at {bare_url}: set that address" in " ".join(
            done.err.split()
        )
        again = tipbench("judge", *where, with_files.url, "--run", "lexical")
        assert again.status == 0, again.err
        assert "was found at" not in again.err


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(MlflowServerError, match="static-prefix"):
        MlflowServer.start(tmp_path, static_prefix="/bench/")
