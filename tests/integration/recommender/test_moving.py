"""Moving: what is refused before anything is written, and what a kill in the middle leaves. Both stores are files here;
test_stores.py moves to PostgreSQL and back."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.recommender.databases import content
from tests.recommender.gates import LINUCB, V2
from tests.recommender.prior.priors import prior_content
from tests.recommender.store.test_document import EVENT, KEPT
from tipbench.core.errors import Conflict, NotFound, StateDamaged, StateRefused
from tipbench.recommender.store.files import FileStore
from tipbench.recommender.store.interface import Key, Marker
from tipbench.recommender.store.moving import move

KEYS = [Key(f"u{number}", policy) for number in range(6) for policy in ("egreedy", "egreedy/v2")]
FIRST, SECOND = 1_800_000_000_000, 1_800_000_001_000


class Killed(BaseException):
    """Ends everything, as SIGKILL does."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path / "source", exclusive=True)
    for number, key in enumerate(KEYS):
        store.write(key, replace(KEPT, late=number), [replace(EVENT, id=f"e{count}") for count in range(number)])
    yield store
    store.close()


@pytest.fixture
def destination(tmp_path: Path) -> Iterator[FileStore]:
    store = FileStore(tmp_path / "destination", exclusive=True)
    yield store
    store.close()


def _unseen(doing: str, done: int, of: int) -> None:
    """Nobody watches."""


def _can_be_served(store: FileStore) -> bool:
    store.close()
    try:
        FileStore(store.folder).close()
    except StateRefused:
        return False
    return True


def test_everything_is_there_and_the_source_says_where(source: FileStore, destination: FileStore) -> None:
    before, watched = content(source), []
    assert move(source, destination, FIRST, lambda *how_far: watched.append(how_far)) == (12, 6)
    assert content(destination) == content(source) == before
    assert source.marker == Marker("MOVED", "files", str(destination.folder), FIRST)
    assert watched[-1] == ("moving", 12, 12)
    assert not _can_be_served(source)
    assert _can_be_served(destination)


def test_there_and_back_what_changed_meanwhile_counts(source: FileStore, destination: FileStore) -> None:
    move(source, destination, FIRST, _unseen)
    with destination.transaction(KEYS[2]) as transaction:
        transaction.put_state(replace(KEPT, late=99))
    destination.clear("u5", ["egreedy"])
    now = content(destination)
    assert move(destination, source, SECOND, _unseen) == (11, 6)
    assert content(source) == now  # and the user who was forgotten stays so
    assert source.marker is None
    assert not _can_be_served(destination)


def test_states_of_others_are_not_overwritten(source: FileStore, destination: FileStore) -> None:
    for key, user_state in ((KEYS[3], replace(KEPT, late=-1)), (Key("somebody", "egreedy"), KEPT)):
        destination.write(key, user_state, [])
        before = content(destination)
        with pytest.raises(Conflict, match=f"such as that of {key.user_id} with {key.policy}, and"):
            move(source, destination, FIRST, _unseen)
        assert content(destination) == before
        assert (source.marker, destination.marker) == (None, None)
        destination.clear(*key[:1], key[1:])


def test_the_same_states_are_no_hindrance(source: FileStore, destination: FileStore) -> None:
    destination.write(KEYS[1], source.read_state(KEYS[1]), source.events(KEYS[1]))
    move(source, destination, FIRST, _unseen)
    assert content(destination) == content(source)


def test_what_was_moved_elsewhere_is_not_replaced(source: FileStore, destination: FileStore, tmp_path: Path) -> None:
    move(source, destination, FIRST, _unseen)
    with pytest.raises(StateRefused, match=f"moved to {destination.folder} already"):
        move(source, destination, SECOND, _unseen)
    another = FileStore(tmp_path / "another", exclusive=True)
    another.write(KEYS[0], KEPT, [])
    with pytest.raises(Conflict, match=f"were moved to {destination.folder}, which is not {another.folder}"):
        move(another, source, SECOND, _unseen)
    another.close()
    assert len(content(source)) == len(KEYS)


def test_nothing_is_not_moved(source: FileStore, destination: FileStore) -> None:
    with pytest.raises(NotFound, match="nothing to move"):
        move(destination, source, FIRST, _unseen)
    assert (source.marker, destination.marker) == (None, None)


def test_a_damaged_state_stops_it_before_anything_is_written(source: FileStore, destination: FileStore) -> None:
    (source.folder / "u3_egreedy.json").write_bytes(b"{")
    with pytest.raises(StateDamaged, match=r"u3_egreedy\.json"):
        move(source, destination, FIRST, _unseen)
    assert content(destination) == {}
    assert (source.marker, destination.marker) == (None, None)


def test_what_is_read_back_is_compared(
    source: FileStore, destination: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = destination.write
    monkeypatch.setattr(destination, "write", lambda key, user_state, events: write(key, user_state, events[1:]))
    with pytest.raises(StateDamaged, match="not the same"):
        move(source, destination, FIRST, _unseen)
    assert source.marker is None
    assert not _can_be_served(destination)
    assert _can_be_served(source)


def _dies_after(calls: int, act: Callable[..., None]) -> Callable[..., None]:
    left = [calls]

    def dying(*arguments: object) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        act(*arguments)

    return dying


@pytest.mark.parametrize("writes", [0, 1, 5, 11])
def test_cut_off_while_writing_it_goes_on(
    source: FileStore, destination: FileStore, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(destination, "write", _dies_after(writes, destination.write))
        with pytest.raises(Killed):
            move(source, destination, FIRST, _unseen)
    assert len(content(destination)) == writes
    with source.transaction(KEYS[0]) as transaction:  # it was served from again in the meantime
        transaction.put_state(replace(KEPT, late=55))
    source.clear("u1", ["egreedy", "egreedy/v2"])
    assert move(source, destination, SECOND, _unseen) == (10, 5)
    assert content(destination) == content(source)
    assert not _can_be_served(source)
    assert _can_be_served(destination)


@pytest.mark.parametrize("marks", range(3))
def test_cut_off_between_the_marks_never_two_can_be_served(
    source: FileStore, destination: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: int
) -> None:
    """Three marks are set: the destination's, the source's, and the destination's again."""
    left = [marks]
    with monkeypatch.context() as patched:
        for store in (source, destination):
            set_marker = store.set_marker

            def dying(mark: Marker | None, act: Callable[[Marker | None], None] = set_marker) -> None:
                if not left[0]:
                    raise Killed
                left[0] -= 1
                act(mark)

            patched.setattr(store, "set_marker", dying)
        with pytest.raises(Killed):
            move(source, destination, FIRST, _unseen)
    before = content(source)
    assert (_can_be_served(source), _can_be_served(destination)) == ((True, True), (True, False), (False, False))[marks]
    again = FileStore(source.folder, exclusive=True), FileStore(destination.folder, exclusive=True)
    assert move(*again, SECOND, _unseen) == (12, 6)
    assert content(again[1]) == before
    assert not _can_be_served(again[0])
    assert _can_be_served(again[1])


def test_a_half_filled_store_is_neither_moved_from_nor_filled_by_another(
    source: FileStore, destination: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(destination, "write", _dies_after(3, destination.write))
        with pytest.raises(Killed):
            move(source, destination, FIRST, _unseen)
    third = FileStore(tmp_path / "third", exclusive=True)
    with pytest.raises(StateRefused, match=f"only a part of the states of {source.folder}; finish that first"):
        move(destination, third, SECOND, _unseen)
    third.write(KEYS[0], KEPT, [])
    half = content(destination)
    with pytest.raises(Conflict, match=f"a part of those that come from {source.folder}, which is not {third.folder}"):
        move(third, destination, SECOND, _unseen)
    third.close()
    assert content(destination) == half


def _two_homes(tmp_path: Path) -> tuple[FileStore, FileStore]:
    """With a history of promotions each."""
    left, entered = (FileStore(tmp_path / name / "state", exclusive=True) for name in ("left", "entered"))
    return left, entered


def test_promotions_go_along_there_and_back(tmp_path: Path) -> None:
    left, entered = _two_homes(tmp_path)
    left.promotions.append(V2, 0)
    assert move(left, entered, FIRST, _unseen) == (0, 0)
    assert entered.promotions.history() == (V2,)
    entered.promotions.append(LINUCB, 1)
    move(entered, left, SECOND, _unseen)
    assert left.promotions.history() == (V2, LINUCB)


def test_promotions_of_others_are_not_mixed(tmp_path: Path) -> None:
    left, entered = _two_homes(tmp_path)
    left.write(KEYS[0], KEPT, [])
    entered.promotions.append(V2, 0)
    with pytest.raises(Conflict, match=r"entered/promotions\.jsonl has promotions that .* does not have"):
        move(left, entered, FIRST, _unseen)
    assert (left.marker, entered.marker) == (None, None)
    assert content(entered) == {}


def test_cut_off_among_the_promotions_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, entered = _two_homes(tmp_path)
    for known, act in enumerate((V2, LINUCB)):
        left.promotions.append(act, known)
    with monkeypatch.context() as patched:
        patched.setattr(entered.promotions, "append", _dies_after(1, entered.promotions.append))
        with pytest.raises(Killed):
            move(left, entered, FIRST, _unseen)
    assert entered.promotions.history() == (V2,)
    assert not _can_be_served(entered)
    left.close()
    left, entered = _two_homes(tmp_path)
    move(left, entered, SECOND, _unseen)
    assert entered.promotions.history() == (V2, LINUCB)
    assert _can_be_served(entered)
    assert not _can_be_served(left)


def test_priors_go_along(tmp_path: Path) -> None:
    left, entered = (FileStore(tmp_path / name / "state", exclusive=True) for name in ("left", "entered"))
    left.write(KEYS[0], KEPT, [])
    digest = left.priors.put(prior_content(tips={"t1": 0.1}))
    move(left, entered, FIRST, _unseen)
    assert entered.priors.digests() == [digest]
    assert entered.priors.read(digest) == left.priors.read(digest)
