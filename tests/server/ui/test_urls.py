"""Whatever stands in a link comes back as it was."""

from urllib.parse import parse_qs, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from tipbench.server.ui import urls

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(NAMES, NAMES)
def test_names_survive_the_query(name: str, run_id: str) -> None:
    for url in (urls.run(name, run_id), urls.answer(name, run_id)):
        assert url.isascii()
        parts = urlsplit(url)
        assert parts.path in (urls.RUN, urls.ANSWER)
        assert not parts.fragment
        assert parse_qs(parts.query, keep_blank_values=True) == {"experiment": [name], "run": [run_id]}


@given(NAMES)
def test_an_id_in_a_path_is_one_step_of_it(job_id: str) -> None:
    assert urls.job(job_id).count("/") == 2
    assert not set("?#&\"'<> ") & set(urls.job(job_id))


def test_what_is_none_is_left_out_and_what_cant_be_encoded_breaks_nothing() -> None:
    assert urls.runs("e", model=None, offset=50) == "/experiments/runs?experiment=e&offset=50"
    assert urls.with_query("/jobs") == "/jobs"
    assert urls.leaderboard("\ud800") == "/experiments/leaderboard?experiment=%3F"
