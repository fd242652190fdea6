"""Of many, the last ones that somebody asked for."""

from itertools import count

from tipbench.runners.airflow.kept import Kept


def test_the_last_ones_stay() -> None:
    kept = Kept(2, count().__next__)
    assert [kept.get(key) for key in "abab"] == [0, 1, 0, 1]
    kept.get("a")
    assert kept.get("c") == 2  # and b went, whom nobody has asked for since
    assert kept.get("a") == 0
    assert kept.get("b") == 3


def test_what_is_dropped_is_made_anew() -> None:
    kept = Kept(2, count().__next__)
    kept.get("a")
    kept.drop("a")
    kept.drop("never there")
    assert kept.get("a") == 1
