"""Identity is content: the same everywhere, and different for whatever is different."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.core.identity import data_digest, derived_seed, text_digest


def test_digests_are_the_same_on_every_machine() -> None:
    """Fixed values: a change of them would make every stored cell a stranger."""
    assert text_digest("tip") == "97380187a878903ffe722b7bfd8d8ba92457ef77de0216cfe9261c72c2b87397"
    assert data_digest({"b": [1, 0.7], "a": "ä"}) == "c8ad471c3bbd9fc89352168737261bbd299d8c193d15ee88c973db75caf119a9"
    assert derived_seed(0, "electrician-morning", 0) == 1416325400


@settings(deadline=None, max_examples=150)
@given(text=st.text(st.characters()), other=st.text(st.characters()))
def test_two_texts_have_one_digest_only_if_they_are_one(text: str, other: str) -> None:
    assert (text_digest(text) == text_digest(other)) == (text == other)


@settings(max_examples=100)
@given(data=st.dictionaries(st.text(st.characters()), st.text(st.characters()) | st.integers()))
def test_the_order_of_keys_does_not_matter(data: dict[str, object]) -> None:
    assert data_digest(dict(reversed(data.items()))) == data_digest(data)


@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**31 - 1), scenario=st.text(), repeat=st.integers(0, 999))
def test_a_derived_seed_fits_every_engine_and_follows_its_parts(seed: int, scenario: str, repeat: int) -> None:
    drawn = derived_seed(seed, scenario, repeat)
    assert 0 <= drawn < 2**31
    assert drawn == derived_seed(seed, scenario, repeat)
    assert drawn != derived_seed(seed, scenario, repeat + 1)
