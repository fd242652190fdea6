"""The key of a service: shown once, kept as a hash, good until another takes its place."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tipbench.core.errors import InvalidInput
from tipbench.web.service_key import ServiceKey
from tipbench.web.tokens import Tokens

SETTING = "TIPBENCH_SERVING_KEY"
GIVEN = "a-key-from-the-environment"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "key"


def test_a_key_is_made_once_and_kept_as_a_hash(path: Path) -> None:
    key = ServiceKey(path, SETTING)
    assert not key.exists()
    assert not key.matches("")
    made = key.ensure()
    assert made
    assert key.exists()
    assert key.matches(made)
    assert not key.matches(made + "x")
    assert not key.matches("")
    again = ServiceKey(path, SETTING)
    assert again.ensure() is None
    assert again.matches(made)
    assert made not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["key"]


def test_a_new_key_counts_at_once_in_every_process(path: Path) -> None:
    serving, renewing = ServiceKey(path, SETTING), ServiceKey(path, SETTING)
    first = serving.ensure()
    assert first
    assert serving.matches(first)
    second = renewing.renew()
    assert serving.matches(second)
    assert not serving.matches(first)
    path.unlink()
    assert not serving.matches(second)


def test_two_at_once_make_one_key(path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: ServiceKey(path, SETTING).ensure(), range(16)))
    assert len([key for key in made if key]) == 1


def test_a_given_key_counts_instead_and_is_stored_nowhere(path: Path) -> None:
    made = ServiceKey(path, SETTING).ensure()
    given = ServiceKey(path, SETTING, GIVEN)
    assert given.ensure() is None
    assert given.matches(GIVEN)
    assert not given.matches(made or "")
    assert GIVEN not in path.read_text()
    with pytest.raises(InvalidInput, match=f"the key is set by {SETTING}"):
        given.renew()


@pytest.mark.parametrize("given", ["x" * 19, "with spaces in the key!!", "ä" * 20])
def test_a_given_key_that_is_weak_or_can_not_travel_is_refused(path: Path, given: str) -> None:
    with pytest.raises(InvalidInput, match=f"{SETTING} has") as caught:
        ServiceKey(path, SETTING, given)
    assert given not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"a key\n", b"\xff" * 97])
def test_a_damaged_key_is_told_and_can_be_replaced(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    key = ServiceKey(path, SETTING)
    with pytest.raises(InvalidInput, match="--new-key replaces it"):
        key.ensure()
    assert key.matches(key.renew())


def test_neither_opens_the_other_door(home: Path) -> None:
    tokens = Tokens(home, lambda: 0.0)
    key = ServiceKey(home / "key", SETTING)
    token, made = tokens.ensure_admin(), key.ensure()
    assert not key.matches(token or "")
    assert tokens.grant_of(made or "") is None
    tokens.close()
