"""The store over MLflow in process, and how it copes with servers that refuse files."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.bench.tracking.store_contract import TEXTS, StoreContract, a_draft
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import Experiment, Metric
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.texts import note_key
from tipbench.core.errors import StoredDataDamaged, TrackingError, TrackingRefused, TrackingUnreachable
from tipbench.core.untrusted import storable


class TestInProcess(StoreContract):
    """The whole contract on the embedded store."""


class Noting(EmbeddedMlflow):
    """An MLflow that notes the sizes of batches, and takes no files where a test says so."""

    refusal: TrackingError | None = None
    reaches_files = True

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.batches: list[tuple[int, int, int]] = []
        self.tries = 0

    def log_batch(
        self, run_id: str, metrics: Sequence[Metric], params: Mapping[str, str], tags: Mapping[str, str]
    ) -> None:
        self.batches.append((len(metrics), len(params), len(tags)))
        super().log_batch(run_id, metrics, params, tags)

    def can_store_files(self, artifact_uri: str) -> bool:
        return self.reaches_files and super().can_store_files(artifact_uri)

    def put_files(self, artifact_uri: str, files: Mapping[str, bytes]) -> None:
        self.tries += 1
        if self.refusal:
            raise self.refusal
        super().put_files(artifact_uri, files)

    def reserve_run(self, experiment: Experiment) -> tuple[str, str] | None:
        return None  # as a server does


@pytest.fixture
def noting(database: Path) -> Iterator[Noting]:
    made = Noting(f"{SCHEME}{database}")
    yield made
    made.close()


def test_tags_go_out_in_batches_and_figures_once(noting: Noting) -> None:
    store = RunStore(noting)
    experiment = store.ensure_experiment("batches", {})
    store.write_run(experiment, a_draft())
    [run] = store.runs(experiment, {})
    noting.batches.clear()
    store.extend_run(run, {f"tag.{n}": "v" for n in range(200)}, {"composite": 1.0, "tone": 2.0})
    assert noting.batches == [(2, 0, 90), (0, 0, 90), (0, 0, 20)]


def test_large_tags_go_out_in_requests_that_mlflow_takes(noting: Noting) -> None:
    noting.reaches_files = False
    store = RunStore(noting)
    experiment = store.ensure_experiment("large", {})
    store.write_run(experiment, a_draft(texts={"raw.txt": "😀" * 300_000}))  # 60 tags of 20 kB
    assert [tags for _, _, tags in noting.batches] == [45, 16]  # under 1 MB each
    [run] = store.runs(experiment, {})
    assert store.text(run, "raw.txt") == "😀" * 300_000


def test_texts_are_files_where_files_can_be_reached(store: RunStore, experiment: Experiment, tmp_path: Path) -> None:
    store.write_run(experiment, a_draft(texts=TEXTS))
    [run] = store.runs(experiment, {})
    assert not [key for key in run.tags if key.startswith("artifact:")]
    assert (Path(run.artifact_uri) / "rubric.md").read_bytes() == TEXTS["rubric.md"].encode()
    assert run.artifact_uri.startswith(str(tmp_path / "mlflow-artifacts"))
    assert store.files_refused == ""


def test_texts_are_tags_where_files_can_not_be_reached(noting: Noting) -> None:
    noting.reaches_files = False
    store = RunStore(noting)
    experiment = store.ensure_experiment("tags", {})
    store.write_run(experiment, a_draft(texts=TEXTS))
    [run] = store.runs(experiment, {})
    assert {"artifact:raw.txt", "artifact:raw.txt:2", "artifact:prompt.txt"} <= set(run.tags)
    assert {name: store.text(run, name) for name in TEXTS} == TEXTS
    assert (noting.tries, store.files_refused) == (0, "")


def test_texts_are_tags_beside_files_where_that_is_asked_for(api: EmbeddedMlflow, experiment: Experiment) -> None:
    asked = RunStore(api, also_tagged=[*TEXTS, "more.txt"])
    asked.write_run(experiment, a_draft(texts=TEXTS))
    [run] = asked.runs(experiment, {})
    for name, text in TEXTS.items():
        parts = [key for key in run.tags if re.fullmatch(rf"artifact:{re.escape(name)}(:\d+)?", key)]
        parts.sort(key=lambda key: int(key.rpartition(":")[2]) if key.count(":") > 1 else 1)
        assert "".join(run.tags[key] for key in parts) == storable(text).text, "whole, and within MLflow's limit"
        assert all(len(run.tags[key]) <= 5_000 for key in parts)
        assert json.loads(run.tags[f"tipbench.text:{name}"])["kept_in"] == "file"
        assert asked.text(run, name) == text
    asked.extend_run(run, {}, new_texts={"more.txt": "more", "other.txt": "other"})
    [run] = asked.runs(experiment, {})
    assert (run.tags["artifact:more.txt"], asked.text(run, "more.txt")) == ("more", "more")
    assert "artifact:other.txt" not in run.tags


@pytest.mark.parametrize("refusal", [TrackingError("no artifact store"), TrackingRefused("not allowed")])
def test_after_one_refused_file_texts_are_tags_and_the_user_can_see_why(noting: Noting, refusal: TrackingError) -> None:
    noting.refusal = refusal
    store = RunStore(noting)
    experiment = store.ensure_experiment("refused", {})
    for started in (1_000, 2_000):
        store.write_run(experiment, a_draft(started, texts=TEXTS))
    assert store.files_refused == str(refusal)
    assert noting.tries == 1
    for run in store.runs(experiment, {}):
        assert {name: store.text(run, name) for name in TEXTS} == TEXTS


def test_a_server_that_went_away_is_no_reason_for_tags(noting: Noting) -> None:
    noting.refusal = TrackingUnreachable("gone")
    store = RunStore(noting)
    experiment = store.ensure_experiment("gone", {})
    with pytest.raises(TrackingUnreachable):
        store.write_run(experiment, a_draft(texts=TEXTS))
    assert store.files_refused == ""
    assert store.runs(experiment, {}) == []


def test_a_lost_or_altered_file_is_found_out(store: RunStore, experiment: Experiment) -> None:
    store.write_run(experiment, a_draft(texts=TEXTS))
    [run] = store.runs(experiment, {})
    path = Path(run.artifact_uri) / "rubric.md"
    path.write_bytes(path.read_bytes().replace(b"Plain", b"plain"))
    with pytest.raises(StoredDataDamaged, match=r"rubric\.md"):
        store.text(run, "rubric.md")
    path.unlink()
    with pytest.raises(TrackingError, match=r"rubric\.md can't be read"):
        store.text(run, "rubric.md")


def test_an_altered_description_is_found_out(store: RunStore, experiment: Experiment) -> None:
    store.write_run(experiment, a_draft(texts=TEXTS))
    [run] = store.runs(experiment, {})
    store.extend_run(run, {note_key("raw.txt"): '{"sha256": "", "escaped": true, "kept_in": "tags", "parts": 1}'})
    [run] = store.runs(experiment, {})
    with pytest.raises(StoredDataDamaged):
        store.text(run, "raw.txt")
