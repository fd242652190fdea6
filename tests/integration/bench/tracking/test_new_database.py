"""With an MLflow of a new schema: it makes its tables itself, while the first cells are generated."""

from pathlib import Path

import pytest

from tests.bench.tracking.store_contract import a_draft
from tipbench.bench.tracking import mlflow_schema
from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.store import RunStore


def test_a_new_database_is_made_while_its_user_goes_on(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is in it yet, and that is what its readers are told; a writer waits until it is there."""
    monkeypatch.setattr(mlflow_schema, "is_installed", lambda: False)
    (home / "cache").unlink()  # as on a user's first day
    api = EmbeddedMlflow(f"{SCHEME}{tmp_path / 'm.db'}")
    store = RunStore(api)
    assert store.find_experiment("x") is None
    assert store.experiments("") == []
    assert not (tmp_path / "m.db").exists()
    experiment = store.ensure_experiment("x", {})
    store.write_run(experiment, a_draft())
    assert store.experiment("x").id == experiment.id
    store.close()
    again = EmbeddedMlflow(f"{SCHEME}{tmp_path / 'other.db'}")  # a copy: it is there at once
    assert (tmp_path / "other.db").exists()
    assert [entry.name for entry in RunStore(again).experiments("")] == ["Default"]
    again.close()
