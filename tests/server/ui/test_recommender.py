"""The recommender at a glance, its shadows and its history."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.recommender.prior.priors import prior_content
from tests.server.ui.visits import links, page_at, visit
from tests.server.views.made_recommender import (
    GATE,
    MadeSimulations,
    a_gate,
    a_signal,
    a_simulation,
    made_room,
    record,
    signal,
)
from tipbench.core.errors import StateDamaged
from tipbench.core.settings import Settings
from tipbench.recommender.shadows.statistics import DAY_MS
from tipbench.recommender.store.moving import open_store
from tipbench.server.ui import urls


def test_before_anything_happened_it_says_what_there_is_to_do(home: Path) -> None:
    page = page_at(visit(), urls.RECOMMENDER)
    assert "Live policy egreedy Nothing has been promoted yet." in page.words
    assert "none yet A gate decides whether a candidate is better than the live policy. Run a gate" in page.words
    assert "no signals A shadow runs beside the live policy without being served." in page.words
    assert "Running" not in page.words
    assert "Nothing has been promoted yet: egreedy has been live" in page_at(visit(), urls.PROMOTIONS).words
    assert "No signals yet." in page_at(visit(), urls.SHADOWS).words
    assert "No gates yet. Run one here, or with tipbench sim gate." in page_at(visit(), urls.GATES).words


def test_the_last_of_everything(home: Path) -> None:
    a_gate(home, passed=False)
    kept = a_gate(home)
    record(Settings(), "promote", "egreedy", "egreedy/v2", kept)
    signal(home, a_signal(0), *(a_signal(number, at_ms=DAY_MS) for number in range(4)))
    runner = MadeSimulations({"s1": a_simulation("s1", "running", GATE), "s2": a_simulation("s2", "finished")})
    page = page_at(visit(recommender=made_room(runner)), urls.RECOMMENDER)
    assert "Live policy egreedy/v2 Promoted on 2023-" in page.words
    assert "passed egreedy/v2 against egreedy, 2023-" in page.words
    assert "Its gain is at least +0.0800 per decision." in page.words
    assert (
        "25 % of 4 signals of egreedy-v2-shadow agree with what was served (1970-01-02); chance would give 25 %."
        in (page.words)
    )
    assert "Running Gate: egreedy/v2 against egreedy running Starting" in page.words
    assert {urls.gate(kept), urls.simulation("s1"), urls.SHADOWS, urls.PROMOTIONS} <= set(links(page))
    assert urls.simulation("s2") not in links(page)


def test_what_can_not_be_read_hides_nothing_else(home: Path) -> None:
    kept = a_gate(home)
    (home / "recommender" / "promotions.jsonl").write_text("{}\n")
    signal(home, {"schema": 9})
    page = page_at(visit(), urls.RECOMMENDER)
    assert "is unknown to this version of tipbench; restore it from a backup" in page.words
    assert "contains a line of another kind of log" in page.words
    assert urls.gate(kept) in links(page)
    with pytest.raises(StateDamaged):  # which the server's errors make a page of
        visit().get(urls.PROMOTIONS)


def test_shadows_day_by_day(home: Path) -> None:
    dropped: dict[str, Any] = {"counts": {"published": 0, "dropped": {"full": 0, "late": 3, "failed": 1}}}
    signal(home, *(a_signal(number) for number in range(4)), a_signal(4, at_ms=DAY_MS, **dropped))
    page = page_at(visit(), urls.SHADOWS)
    assert "How often it agrees says nothing about how good it is" in page.words
    newest, oldest = [row.words for row in next(page.all("tbody")).all("tr")]
    assert newest == "1970-01-02 egreedy-v2-shadow 1 100 % 25 % 4 3 too late, 1 failed 6.0 ms, 6.0 ms 2.0 of 5"
    assert oldest == "1970-01-01 egreedy-v2-shadow 4 25 % 25 % 0 3.5 ms, 4.8 ms 2.0 of 5"


def test_the_history_leads_to_the_gates_and_says_how_to_go_on(home: Path) -> None:
    kept = a_gate(home)
    record(Settings(), "promote", "egreedy", "egreedy/v2", kept)
    record(Settings(), "rollback", "egreedy/v2", "egreedy")
    page = page_at(visit(), urls.PROMOTIONS)
    assert "egreedy is live." in page.words
    assert [code.words for code in page.all("code")][:2] == [
        "tipbench recommend promote POLICY --gate ID",
        "tipbench recommend rollback",
    ]
    rollback, promotion = [row.words for row in next(page.all("tbody")).all("tr")]
    assert "UTC rollback egreedy/v2 egreedy – –" in rollback
    assert f"UTC promote egreedy egreedy/v2 {kept} –" in promotion
    assert urls.gate(kept) in links(page)


def test_priors_lead_to_their_gates(home: Path) -> None:
    page = page_at(visit(), urls.PRIORS)
    assert "No priors yet. egreedy/v3 and ucb/v3 can be served without one." in page.words
    assert "tipbench recommend prior fit" in page.words
    with closing(open_store(Settings())) as store:
        digest = store.priors.put(prior_content(tips={"t1": 0.1}))
        (home / "recommender" / "priors" / f"{'0' * 16}.json").write_text("{}")
    record(Settings(), "promote", "egreedy", "ucb/v3")
    page = page_at(visit(), urls.PRIORS)
    assert f"{digest} 100 1,000 1 1970-01-01" in page.words
    assert "was changed after it was written, so it can't be trusted" in page.words
    candidates = [node.attributes.get("value") for node in page.all("input") if node.attributes["name"] == "candidate"]
    assert candidates == [f"egreedy/v3@{digest}", f"ucb/v3@{digest}"]
    options = [node.attributes.get("value") for node in page_at(visit(), urls.SIMULATIONS).all("option")]
    assert set(candidates) <= set(options)
