"""The report is one inert file that says what the board says, whatever others wrote into it."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bench.compare.html.boards import (
    RUBRIC,
    Written,
    batch,
    board,
    cell,
    counted,
    empty,
    failed,
    grid,
    provisional,
    report,
)
from tests.bench.compare.html.parsed import Node, parsed
from tipbench.bench.compare import messages as words
from tipbench.bench.compare.html.page import Report, as_html
from tipbench.bench.compare.html.templates import TEXT_LIMIT, cut
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.texts import ENTRIES_IN_FILE
from tipbench.bench.records import StoredCell
from tipbench.core.untrusted import printable

GRID = board(grid(["m1", "m2"], ["v1", "v2", "v3"]))
FULL = report(GRID, Written(), [batch(), batch("in quarantine", "too mild", "jon"), batch("provisional", kappa=None)])
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onclick='alert(3)",
    "</style></title></svg></blockquote>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; & &#60;",
    "a\u202egnorw\u202c \x1b[31mred\x07 \x00 \ud800 \ufffe",
    "<!-- -->]]>",
]


def page_of(found: Report) -> Node:
    return parsed(as_html(found))


def structure(page: Node) -> list[tuple[str, tuple[str, ...]]]:
    return [(node.tag, tuple(node.attributes)) for node in page.all()]


def rows_of(table: Node) -> list[list[str]]:
    (body,) = table.all("tbody")
    return [[one.words for one in row.inside if isinstance(one, Node)] for row in body.all("tr")]


def test_nothing_in_it_runs_or_is_loaded() -> None:
    text = as_html(FULL)
    page = parsed(text)
    assert text.startswith("<!doctype html>")
    assert [node.attributes["content"] for node in page.all("meta") if "http-equiv" in node.attributes] == [POLICY]
    tags = {node.tag for node in page.all()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "image", "use"}
    names = {name for node in page.all() for name in node.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert not names & {"src", "srcset", "action", "xlink:href", "data"}
    links = [node.attributes["href"] or "" for node in page.all() if "href" in node.attributes]
    assert links
    assert {link.removeprefix("#") for link in links} <= {node.attributes.get("id") for node in page.all()}
    assert not re.search(r"https?:|url\(|@import", text)


def test_it_can_be_read_without_eyes() -> None:
    page = page_of(FULL)
    assert [node.tag for node in page.all() if node.tag in ("h1", "main", "nav")] == ["h1", "main"]
    assert {node.attributes.get("scope") for node in page.all("th")} == {"row", "col"}
    pictures = list(page.all("svg"))
    assert all(picture.attributes["role"] == "img" for picture in pictures)
    plots = [picture for picture in pictures if picture.attributes.get("class") != "interval"]
    assert len(plots) == 6
    assert {bool(one.attributes.get("aria-label")) for one in pictures if one not in plots} == {True}
    for picture in plots:
        assert [one.tag for one in picture.inside[:2] if isinstance(one, Node)] == ["title", "desc"]
        assert all(one.words for one in picture.inside[:2] if isinstance(one, Node))
    names = [node.attributes["id"] for node in page.all() if "id" in node.attributes]
    assert len(names) == len(set(names))


def report_with(text: str, scenarios: int) -> Report:
    """Whatever others can write, and the names that somebody gave, is this text."""
    cells = [
        replace(one, scenario=f"{one.scenario}{text}", factors={text: f"{one.factors['time_slot']}{text}"})
        for one in grid([f"{text}1", f"{text}2"], [f"{text}v1", f"{text}v2"], scenarios)
    ]
    batches = [batch("in quarantine", text, text), batch("accepted", text, f"{text}2")]
    found = report(board(cells, text), Written(text, text, text), batches)
    return replace(found, made_at=text)


HARMLESS = {scenarios: structure(page_of(report_with("x", scenarios))) for scenarios in (2, 4)}


@pytest.mark.parametrize("text", NASTY)
def test_what_others_wrote_is_shown_and_is_never_markup(text: str) -> None:
    page = page_of(report_with(text, 4))
    assert structure(page) == HARMLESS[4]
    assert page.text.count(printable(text)) > 40
    assert {node.text for node in page.all("blockquote")} == {printable(text)}


@settings(deadline=None, max_examples=25)
@given(
    st.one_of(st.text(min_size=1, max_size=20), st.lists(st.sampled_from("<>&\"'/=x{%#\\"), min_size=1).map("".join))
)
def test_no_text_changes_the_page_around_it(text: str) -> None:
    text = f"_{text[:20]}_"
    written = as_html(report_with(text, 2))
    written.encode()
    assert not UNSEEN.search(written)
    page = parsed(written)
    assert structure(page) == HARMLESS[2]
    assert {node.text for node in page.all("blockquote")} == {printable(text)}
    assert [node.text for node in page.all("h1")] == [printable(text)]


def test_a_text_of_a_megabyte_is_cut_and_that_is_said() -> None:
    written = as_html(report(board(grid(["m"], ["v1"], 1)), Written("\u202e" * 1_000_000, "n" * 5_000)))
    assert len(written) < 250_000
    assert f"{1_000_000 - TEXT_LIMIT:,} more characters" in written
    assert f"{5_000 - TEXT_LIMIT:,} more characters" in written


def test_a_text_at_the_limit_is_whole() -> None:
    assert cut("x" * TEXT_LIMIT) == ("x" * TEXT_LIMIT, 0)
    assert cut("x" * (TEXT_LIMIT + 1)) == ("x" * TEXT_LIMIT, 1)


def test_the_leaderboard_has_the_boards_figures() -> None:
    cells = [*grid(["m1", "m2"], ["v1"]), failed(cell("m1", "v1", "s8")), empty(cell("m2", "v1", "s9"))]
    found = board(cells)
    (table,) = page_of(report(found)).all("table", "board")
    for row, standing in zip(rows_of(table), found.rows, strict=True):
        low, high = standing.intervals["composite"]
        assert standing.rank is not None
        assert row[0] == f"{standing.model} {standing.prompt}"
        assert row[2] == f"{standing.composite:.2f} {low:.1f} – {high:.1f}"
        assert row[3] == words.percent(standing.rank.p_best)
        for place, name in enumerate(("relevance", "actionability", "tone"), 4):
            low, high = standing.intervals[name]
            assert row[place] == f"{standing.means[name]:.2f} {low:.1f} – {high:.1f}"
    cells_told = {row[0]: row[10] for row in rows_of(table)}
    assert cells_told == {"m1 v1": "5 judged 1 failed 1 missing", "m2 v1": "6 judged 1 missing 1 empty"}
    worst, best = found.rows[0].extremes
    assert rows_of(table)[0][9] == f"{worst:.1f} – {best:.1f}"


def test_the_heat_map_has_every_row_once_and_says_what_is_not_scored() -> None:
    cells = [*grid(["m1", "m2"], ["v1", "v2"]), *(failed(cell("m3", "v1", f"s{s}")) for s in range(5))]
    found = board(cells)
    table, *_ = page_of(report(found)).all("table", "heat")
    shown = {row[0]: row[1:] for row in rows_of(table)}
    for standing in found.rows:
        place = ["v1", "v2"].index(standing.prompt)
        told = "not scored" if standing.composite is None else f"{standing.composite:.2f}"
        assert shown[standing.model][place].startswith(told)
    assert shown["m3"] == ["not scored", "not asked"]


def test_rows_asked_in_different_ways_have_columns_of_their_own() -> None:
    hot = [
        replace(one, settings={"temperature": "1.2"}, run_id=f"{one.run_id}h", key=f"{one.key}h")
        for one in grid(["m1"], ["v1"])
    ]
    cold = [replace(one, settings={"temperature": "0.2"}) for one in grid(["m1"], ["v1"])]
    page = page_of(report(board([*hot, *cold])))
    table, *_ = page.all("table", "heat")
    assert [node.words for node in table.all("th")][:3] == ["model", "v1 (temperature=0.2)", "v1 (temperature=1.2)"]
    assert "rows of the same model and prompt were collected with different settings" in page.words


def test_rows_whose_labels_are_the_same_share_a_place() -> None:
    alike = [
        replace(one, prompt_digest="d" * 63 + end, run_id=f"{one.run_id}{end}", key=f"{one.key}{end}")
        for end in "ef"
        for one in grid(["m1"], ["v1"])
    ]
    found = board(alike)
    table, *_ = page_of(report(found)).all("table", "heat")
    ((_, both),) = rows_of(table)
    assert both == " ".join(f"{standing.composite:.2f}" for standing in found.rows)


def test_slices_and_cost_have_the_boards_figures() -> None:
    page = page_of(FULL)
    _, table = page.all("table", "heat")
    for row, standing in zip(rows_of(table), GRID.rows, strict=True):
        for told, level in zip(row[1:], ("early", "late"), strict=True):
            one = standing.slices["time_slot"][level]
            assert one.interval
            assert told == f"{one.mean:.2f} {one.interval.low:.1f} – {one.interval.high:.1f}"
    cost = list(page.all("table"))[-1]
    for row, standing in zip(rows_of(cost), GRID.rows, strict=True):
        assert row[3:5] == [f"{standing.composite:.2f}", f"{standing.cost.seconds:.2f}"]
        assert (row[2] == "◆ front") == standing.on_front
        assert row[-2:] == ["2.0 GB", "3.2 B"]


def test_all_sentences_about_the_board_are_on_the_page() -> None:
    cells = [*grid(["m1", "m2"], ["v1", "v2", "v3"]), failed(cell("m1", "v1", "s9"))]
    found = board(cells)
    text = page_of(report(found)).words
    said = [words.headline(found), *words.verdict(found), *words.warnings(found), *words.effect_sentences(found)]
    assert len(said) > 5
    assert [one for one in said if one not in text] == []


def test_judges_and_how_far_to_trust_them() -> None:
    page = page_of(FULL)
    told = [node.words for node in page.all("li", "batch")]
    assert told[0].startswith("mira counts")
    assert "tone 0.75 0.50 – 0.90 +0.12 -0.25 to +0.50 0.38" in told[0]
    assert "in quarantine" in told[1]
    assert "Why too mild" in told[1]
    assert "tone not assessable" in told[2]
    assert "α (1 is full agreement, 0 is chance): tone 0.62" in page.words


def test_a_batch_without_anchors_is_not_assessable() -> None:
    page = page_of(report(GRID, batches=[replace(batch(), criteria={}, anchors=0)]))
    assert "Not assessable" in next(page.all("li", "batch")).words


def test_one_judge_alone_is_said_to_be_alone() -> None:
    assert "Fewer than two judges count" in page_of(replace(FULL, alpha={})).words
    assert "tone not assessable" in page_of(replace(FULL, alpha={"tone": None})).words


def test_the_leaders_worst_and_best_texts_come_first_with_scores_flags_and_notes() -> None:
    (section,) = [node for node in page_of(FULL).all("section") if node.attributes.get("id") == "texts"]
    leader = [node.words for node in next(section.all("div", "leader-texts")).all("article")]
    best = max(row.scores[scenario]["composite"] for row in GRID.grid.rows[:1] for scenario in row.scores)
    assert [one.split()[1] for one in leader] == ["worst", "worst", "best", "best"]
    assert leader[2].startswith(f"{best - 1.5:.2f} best s")
    assert leader[2].endswith("Ring now. tone 4 format ok yes overlong 0.5 A judge’s note Good. A judge’s note Good.")


def test_scenarios_are_folds_with_all_rows_and_the_one_with_the_largest_difference_is_open() -> None:
    (section,) = [node for node in page_of(FULL).all("section") if node.attributes.get("id") == "texts"]
    folds = list(section.all("details", "scenario-texts"))
    assert ["open" in node.attributes for node in folds] == [True, False, False, False, False]
    gaps = [float(next(fold.all("span", "says")).words.split()[0]) for fold in folds]
    assert gaps == sorted(gaps, reverse=True)
    names = [" ".join(row[0].split()[:2]) for row in rows_of(next(folds[0].all("table")))]
    assert names == [f"{row.model} {row.prompt}" for row in GRID.rows]
    assert "are shown here" not in section.words


def test_a_large_report_holds_part_of_the_texts_and_says_so() -> None:
    found = board(grid([f"m{n}" for n in range(20)], ["v1", "v2", "v3"], 8))
    page = page_of(report(found, Written("x" * 400)))
    (section,) = [node for node in page.all("section") if node.attributes.get("id") == "texts"]
    assert len(list(section.all("article"))) <= 2 * ENTRIES_IN_FILE + 4
    assert "3 of 8 scenarios are shown here" in section.words
    assert "tipbench serve" in section.words


PENDING = [cell(m, p, f"s{s}") for m in ("m1", "m2") for p in ("v1", "v2") for s in range(3)]
EMPTY_STATES: dict[str, tuple[Sequence[StoredCell], str]] = {
    "no cells": ([], "The experiment holds no cells yet."),
    "nothing judged": (PENDING, "Nothing is scored yet"),
    "all failed": ([failed(one) for one in PENDING], "All 12 cells failed"),
    "all empty": ([empty(one) for one in PENDING], "12 without a usable candidate, which score the minimum"),
    "one row": (grid(["m"], ["v1"]), "fewer than two rows have scores"),
    "one scenario": (grid(["m1", "m2"], ["v1", "v2"], 1), "Too few scenarios to compare 4 variants"),
    "one prompt": (grid(["m1", "m2"], ["v1"]), "Models: m1"),
    "one cell": ([counted(cell(), 3)], "There is nothing to compare"),
    "all alike": ([counted(one, 6) for one in PENDING], "have the same mean there"),
    "provisional": ([provisional(one, 6) for one in PENDING], "scores come from simple rules, which don't count"),
    "without seconds": (
        [counted(replace(one, metrics={}), place) for place, one in enumerate(PENDING)],
        "No row has both a score and known seconds",
    ),
}


@pytest.mark.parametrize("state", EMPTY_STATES)
def test_the_page_makes_sense_whatever_is_missing(state: str) -> None:
    cells, said = EMPTY_STATES[state]
    page = page_of(report(board(cells)))
    assert said in page.words
    shown = " ".join(node.words for node in page.all("main"))
    assert not re.search(r"\b(None|nan|inf|Undefined)\b", shown)
    assert all(list(node.all("td")) for node in page.all("table"))


def test_only_figures_of_rules_are_called_provisional() -> None:
    def answer(cells: Sequence[StoredCell]) -> str:
        return next(page_of(report(board(cells))).all("p", "lead")).words

    assert "rules" not in answer(grid(["m"], ["v1"]))
    assert answer(PENDING) == "No answer yet: nothing is judged."
    assert answer([provisional(one, 3) for one in PENDING]).startswith("No answer yet: scores come from simple rules")


def test_many_rows_with_long_names_stay_a_small_page() -> None:
    names = [f"embedded/{'long-name-' * 20}{number}" for number in range(10)]
    found: Leaderboard = board(grid(names, ["v1", "v2", "v3", "v4"], 3))
    written = as_html(report(found, Written()))
    assert len(written) < 1_000_000
    assert all(f'title="{name}"' in written for name in names)
    assert RUBRIC.digest[:12] in written
