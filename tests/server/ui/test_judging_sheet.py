from dataclasses import replace

from tests.server.ui.fake_desk import scale_sheet, tip_sheet
from tipbench.server.ui.judging_sheet import TEXT_LIMIT, levels, sheet_data, steps, unscored


def test_steps_are_the_criteria_and_then_the_flags() -> None:
    found = steps(tip_sheet(1))
    assert [(step.part, step.name) for step in found] == [
        ("scores", "relevance"),
        ("scores", "actionability"),
        ("scores", "tone"),
        ("flags", "format_ok"),
        ("flags", "overlong"),
    ]
    assert [choice.label for choice in found[0].choices] == ["1", "2", "3", "4", "5"]
    assert [choice.label for choice in found[4].choices] == ["Yes", "No"]
    assert [level.score for level in found[2].levels] == [5, 4, 3, 2, 1]
    assert "considerate" not in found[2].levels[4].text
    assert found[3].title == "Format ok"


def test_a_scale_below_nought_has_all_its_steps() -> None:
    assert [choice.value for choice in steps(scale_sheet(-2, 1))[0].choices] == [-2, -1, 0, 1]


def test_texts_are_made_visible_and_cut() -> None:
    item = sheet_data(tip_sheet(2, texts=["a\u202eb\x1b[2J\x00", "x" * (TEXT_LIMIT + 7)]))["items"]
    assert item[0]["candidate"] == {"text": "a\\u202eb\\u001b[2J\\u0000", "left_out": 0}
    assert item[1]["candidate"] == {"text": "x" * TEXT_LIMIT, "left_out": 7}


def test_items_that_are_not_complete_are_unscored() -> None:
    sheet = tip_sheet(2)
    done = replace(sheet.items[0].given, complete=True)
    sheet = replace(sheet, items=[replace(sheet.items[0], given=done), sheet.items[1]])
    assert unscored(sheet) == [sheet.items[1]]


def test_a_level_in_short_is_its_first_sentence() -> None:
    best = levels(tip_sheet(1).criteria[0])[0]
    assert best.score == 5
    assert best.short.startswith("<p>The tip serves a real task or needed rest")
    assert "conflicts with nothing" not in best.short
