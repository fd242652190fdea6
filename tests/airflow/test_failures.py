from tipbench.airflow.request import CellsFailed, user_message


def test_what_users_can_mend_is_told_as_it_is() -> None:
    assert user_message(CellsFailed("2 cells failed:\n  - one\n  - two\x1b[2J")) == (
        "2 cells failed:\n  - one\n  - two\\u001b[2J"
    )


def test_an_error_that_nobody_foresaw_is_named() -> None:
    assert user_message(KeyError("batch")) == (
        "it ended with an unexpected error (KeyError: 'batch'); its log has more"
    )


def test_names_of_any_length_are_not_kept_for_good() -> None:
    told = user_message(CellsFailed("x" * 1_000_000))
    assert len(told) == 10_000
    assert told.endswith("…")
