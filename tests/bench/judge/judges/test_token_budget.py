"""Room in a context: guesses that are rather too high, and cuts that keep within them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge.judges.prompt import TRUNCATED, estimate_tokens, truncate


@settings(deadline=None, max_examples=150)
@given(text=st.text(max_size=400), room=st.integers(10, 200))
def test_a_cut_text_has_room_and_begins_as_before(text: str, room: int) -> None:
    made = truncate(text, room)
    assert estimate_tokens(made) <= room
    assert made == text or (made.endswith(TRUNCATED) and text.startswith(made.removesuffix(TRUNCATED)))
    assert (made == text) is (estimate_tokens(text) <= room)


def test_no_text_is_guessed_at_nothing() -> None:
    assert estimate_tokens("A word of English takes a token or two.") in range(10, 20)
    assert estimate_tokens("{}[]") == 4
    assert estimate_tokens("äöü") == 6
    assert estimate_tokens("x" * 1200) == 400
