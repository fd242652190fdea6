"""Which policy is live: read again only when something was added, and never guessed."""

from pathlib import Path
from typing import Literal

import pytest

from tests.recommender.gates import BACK, LINUCB, V2
from tests.recommender.making import Clock
from tipbench.core.errors import StateDamaged, StateRefused
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.files import FilePromotions
from tipbench.recommender.promotion.interface import Act
from tipbench.recommender.promotion.live import LivePolicy, live_now
from tipbench.recommender.store.moving import open_store


class Counted(FilePromotions):
    """Counts how often it is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.marks = self.reads = 0

    def revision(self) -> object:
        self.marks += 1
        return super().revision()

    def history(self) -> tuple[Act, ...]:
        self.reads += 1
        return super().history()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "promotions.jsonl"


@pytest.fixture
def promotions(path: Path) -> Counted:
    return Counted(path)


def test_it_follows_what_others_add(promotions: Counted, path: Path) -> None:
    live, others = LivePolicy(promotions), FilePromotions(path)
    assert live.current() == "egreedy"
    for known, act in enumerate((V2, LINUCB)):
        others.append(act, known)
        assert live.current() == act.to


def test_it_reads_only_what_has_changed(promotions: Counted, path: Path) -> None:
    live = LivePolicy(promotions)
    assert {live.current() for _ in range(10)} == {"egreedy"}
    FilePromotions(path).append(V2, 0)
    assert {live.current() for _ in range(10)} == {"egreedy/v2"}
    assert (promotions.marks, promotions.reads) == (20, 2)


def test_where_asking_costs_something_it_asks_once_in_a_while(promotions: Counted, path: Path) -> None:
    clock = Clock()
    promotions.poll_interval_s = 1.0
    live = LivePolicy(promotions, clock=clock)
    assert live.current() == "egreedy"
    FilePromotions(path).append(V2, 0)
    clock.now += 0.9
    assert live.current() == "egreedy"
    clock.now += 0.2
    assert live.current() == "egreedy/v2"
    clock.now += 1.1
    assert live.current() == "egreedy/v2"
    assert (promotions.marks, promotions.reads) == (3, 2)


def test_damage_is_told_with_every_request_until_it_is_mended(promotions: Counted, path: Path) -> None:
    live = LivePolicy(promotions)
    promotions.append(V2, 0)
    assert live.current() == "egreedy/v2"
    whole = path.read_bytes()
    path.write_bytes(whole + b"nonsense\n")
    for _ in range(2):
        with pytest.raises(StateDamaged, match="entry 2"):
            live.current()
    path.write_bytes(whole)
    assert live.current() == "egreedy/v2"


def test_a_thread_that_was_overtaken_while_it_read_finds_nothing_missing(path: Path) -> None:
    class Overtaken(FilePromotions):
        def history(self) -> tuple[Act, ...]:
            found = super().history()
            if len(found) == 1:
                FilePromotions(path).append(LINUCB, 1)
                assert live.current() == "linucb"
            return found

    live = LivePolicy(Overtaken(path))
    FilePromotions(path).append(V2, 0)
    assert live.current() == "egreedy/v2"
    assert live.current() == "linucb"


@pytest.mark.parametrize("left", ["nothing", "less", "another"])
def test_acts_that_have_gone_are_no_rollback(promotions: Counted, path: Path, left: str) -> None:
    live = LivePolicy(promotions)
    promotions.append(V2, 0)
    promotions.append(LINUCB, 1)
    assert live.current() == "linucb"
    path.unlink()
    for known, act in enumerate({"nothing": (), "less": (V2,), "another": (V2, BACK)}[left]):
        FilePromotions(path).append(act, known)
    with pytest.raises(StateDamaged, match="are missing now; restore it from a backup"):
        live.current()


def test_a_policy_of_a_newer_tipbench_is_refused(promotions: Counted) -> None:
    promotions.append(V2.model_copy(update={"to": "egreedy/v9"}), 0)
    with pytest.raises(StateRefused, match=r"'egreedy/v9' was promoted, .* knows egreedy, .*; install"):
        LivePolicy(promotions).current()


def test_in_the_store_that_the_settings_name() -> None:
    settings = Settings()
    assert live_now(settings) == "egreedy"
    open_store(settings).promotions.append(V2, 0)
    assert live_now(settings) == "egreedy/v2"
    assert (settings.home / "recommender" / "promotions.jsonl").read_text(encoding="utf-8") == V2.as_json() + "\n"


def test_a_policy_asked_for_by_name_has_the_prior_that_was_promoted_last(promotions: Counted) -> None:
    live = LivePolicy(promotions)
    first, second = "ucb/v3@" + "a" * 16, "ucb/v3@" + "b" * 16
    assert live.identity("ucb/v3") == "ucb/v3"
    acts = [
        _act("promote", "egreedy", first),
        _act("promote", first, second),  # another prior for the same policy
        _act("promote", second, "egreedy/v2"),
        _act("rollback", "egreedy/v2", second),
        _act("rollback", second, first),
        _act("rollback", first, "egreedy"),
    ]
    for known, (act, named) in enumerate(zip(acts, (first, second, second, second, first, "ucb/v3"), strict=True)):
        promotions.append(act, known)
        assert (live.current(), live.identity("ucb/v3")) == (act.to, named)


def _act(act: Literal["promote", "rollback"], left: str, to: str) -> Act:
    return Act(at_ms=1, act=act, left=left, to=to, gate=None, replay=None, candidate={"name": to})
