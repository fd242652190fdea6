"""Whatever stops the delivery comes out where somebody sees it, and the cells stay in the journal."""

from pathlib import Path
from typing import Any

import pytest

from tests.collect.test_journal import HEAD, entry
from tipbench.collect.delivery import delivering
from tipbench.collect.journal import Journal, left_behind
from tipbench.tracking.embedded import EmbeddedMlflow
from tipbench.tracking.store import RunStore


def test_an_error_nobody_thought_of_ends_the_collection_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: Any) -> None:
        raise RuntimeError("nobody thought of this")

    api = EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
    store = RunStore(api)
    experiment = store.ensure_experiment("tip-bench-x", {})
    journal = Journal.create(tmp_path / "journal", HEAD, "me")
    draft = entry("a").draft
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "write_runs", breaks)
        with (
            pytest.raises(RuntimeError, match="nobody thought of this"),
            delivering(journal, store, experiment) as keeper,
        ):
            keeper.keep("a", draft)
    (kept,) = left_behind(tmp_path / "journal")
    assert [found.key for found, _ in kept.waiting(9)] == ["a"]
    kept.close()
    api.close()
