"""A replay's page: the verdict first, then what it rests on."""

from pathlib import Path

import pytest

from tests.server.ui.visits import page_at, visit
from tests.server.views.made_recommender import a_replay
from tipbench.core.errors import NotFound
from tipbench.server.ui import urls


@pytest.mark.parametrize(
    ("status", "head", "then"),
    [
        ("passed", "Passed", "A promotion by a gate names it as well."),
        ("failed", "Not passed", "It blocks a promotion"),
        ("undecided", "Undecided", "So it speaks neither for the candidate nor against it, and blocks nothing."),
        ("thin", "Too thin", "So it speaks neither for the candidate nor against it, and blocks nothing."),
    ],
)
def test_a_verdict_and_what_follows_from_it(home: Path, status: str, head: str, then: str) -> None:
    page = page_at(visit(), urls.replay(a_replay(home, status)))
    (verdict,) = page.all("section", "verdict")
    assert verdict.words.startswith(f"{head} By DR it earns what it earns. {then}")
    assert ("tipbench sim replay --candidate egreedy/v2" in verdict.words) == (status != "passed")
    assert "Left out: 3 got no reward." in page.words
    assert "10 of these came without profile_features" in page.words
    assert "Decided from 1970-01-01 00:00 UTC to 1970-01-02 00:00 UTC. The first 50 % of each user’s" in page.words
    rows = [row.words for row in next(page.all("tbody")).all("tr")]
    assert [row.strip() for row in rows] == [
        "what was served 0.1400 ± 0.0300",
        "IPS 0.3400 ± 0.0900 +0.2000",
        "DR decides 0.3400 ± 0.0900 +0.2000",
    ]


def test_one_with_nothing_to_estimate_from(home: Path) -> None:
    page = page_at(visit(), urls.replay(a_replay(home, "thin", estimated=False)))
    assert "Too thin" in page.words
    assert not list(page.all("table"))


def test_the_list_tells_verdicts_and_what_was_changed(home: Path) -> None:
    assert "No replays yet." in page_at(visit(), urls.REPLAYS).words
    kept, edited = a_replay(home, "thin"), a_replay(home)
    path = home / "recommender" / "replays" / f"{edited}.json"
    path.write_text(path.read_text("utf-8").replace("egreedy", "nobody"), "utf-8")
    page = page_at(visit(), urls.REPLAYS)
    first, second = [row.words for row in next(page.all("tbody")).all("tr")]
    assert first.startswith("egreedy/v2")
    assert "too thin by DR it earns what it earns" in first
    assert second.startswith(edited)
    assert "so it can't be trusted" in second
    assert urls.replay(kept) in [node.attributes.get("href") for node in page.all("a")]


def test_one_that_is_not_there_is_not_made_up(home: Path) -> None:
    with pytest.raises(NotFound):
        visit().get(urls.replay("0123456789abcdef"))
