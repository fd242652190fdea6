"""What a face answers when a call fails."""

from pydantic import BaseModel

from tests.server.mcp.conftest import refusal
from tipbench.core.errors import InvalidInput, TipbenchError, TrackingUnreachable
from tipbench.server.mcp.tools import Answer, Face, Tool


class Nothing(BaseModel):
    pass


def face(error: Exception, is_blind: bool = False) -> Face:
    def fail(_: Nothing) -> Answer:
        raise error

    return Face("", [Tool("try", "", Nothing, fail)], is_blind)


def test_an_unknown_tool_names_those_that_there_are(judge: Face) -> None:
    expected = "there is no tool 'leaderboard' for you here; there are next_items, submit_scores, my_calibration"
    assert refusal(judge, "leaderboard", experiment="x") == expected


def test_wrong_arguments_are_all_named(judge: Face) -> None:
    message = refusal(judge, "next_items", count=0, model="x")
    assert message.startswith("next_items can't use these arguments:")
    assert "- count: should be at least 1 (given: 0)" in message
    assert "- model: is not a known field (given: 'x')" in message


def test_a_judge_reads_what_is_about_the_input_and_nothing_else() -> None:
    readable: TipbenchError = InvalidInput("the note is too long")
    assert refusal(face(readable, is_blind=True), "try") == "the note is too long"
    hidden = TrackingUnreachable("nothing answers at http://mlflow-of-qwen:5000")
    assert refusal(face(hidden), "try") == str(hidden)
    assert refusal(face(hidden, is_blind=True), "try").startswith("this is not available right now; try again")


def test_a_bug_is_a_number_and_no_traceback() -> None:
    message = refusal(face(ZeroDivisionError("in qwen.py")), "try")
    assert message.startswith("something went wrong here; try again")
    assert "qwen" not in message
