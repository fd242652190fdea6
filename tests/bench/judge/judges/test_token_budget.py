"""Room in a context: guesses that are rather too high, and cuts that keep within them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge.judges.prompt import CUT, cut, tokens


@settings(deadline=None, max_examples=150)
@given(text=st.text(max_size=400), room=st.integers(10, 200))
def test_a_cut_text_has_room_and_begins_as_before(text: str, room: int) -> None:
    made = cut(text, room)
    assert tokens(made) <= room
    assert made == text or (made.endswith(CUT) and text.startswith(made.removesuffix(CUT)))
    assert (made == text) is (tokens(text) <= room)


def test_no_text_is_guessed_at_nothing() -> None:
    assert tokens("A word of English takes a token or two.") in range(10, 20)
    assert tokens("{}[]") == 4
    assert tokens("äöü") == 6
    assert tokens("x" * 1200) == 400
