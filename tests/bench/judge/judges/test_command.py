"""The judge that is a program: what it gets, what is taken from it, and that nothing of it is left behind."""

import copy
import json
import shlex
import sys
from pathlib import Path

import pytest

from tests.bench.judge.judges.files import (
    CLEAR,
    HOSTILE,
    RUN_IDS,
    SECRET_OF_THE_SHUFFLE,
    a_file,
    batch_and_file,
    scores_of_others,
    with_hostile,
)
from tipbench.bench.judge.judges.command import CommandJudge
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.verify import verify
from tipbench.core.errors import InvalidInput, JudgeFailed

NAME = JudgeName("program")
BY_RULE = """
import json, sys
file = json.load(sys.stdin)
for item in file["items"]:
    words = len(item["candidate"].split())
    item["scores"] = {name: max(s["min"], min(s["max"], words // 3)) for name, s in file["scales"].items()}
json.dump(file, sys.stdout)
"""


def judge(code: str, timeout_s: float = 60) -> CommandJudge:
    return CommandJudge(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}", NAME, timeout_s)


def test_it_fills_in_the_file_and_the_given_one_stays() -> None:
    batch, file = batch_and_file()
    before = copy.deepcopy(file)
    filled = judge(BY_RULE).score(file)
    assert file == before
    assert [verdict.scores["clarity"] for verdict in verify(filled, batch, CLEAR)] == [4, 1, 2, 1]


def test_it_gets_the_file_and_nothing_else(tmp_path: Path) -> None:
    file = a_file()
    seen = tmp_path / "seen"
    code = f"import sys; text = sys.stdin.read(); open({str(seen)!r}, 'w').write(text); print(text)"
    assert judge(code).score(file) == file
    text = seen.read_text()
    assert json.loads(text) == file
    assert not [known for known in (*RUN_IDS, SECRET_OF_THE_SHUFFLE) if known in text]


ALONE = BY_RULE.replace(
    "json.dump(file, sys.stdout)",
    "scores = json.dumps({item['slot']: item['scores'] for item in file['items']})\nprint(AROUND % scores)",
)


@pytest.mark.parametrize("around", ["%s", "```json\n%s\n```", "My scores:\n%s\nThat is all."])
def test_scores_alone_are_enough_and_prose_around_them_does_no_harm(around: str) -> None:
    batch, file = batch_and_file()
    filled = judge(f"AROUND = {around!r}\n{ALONE}").score(file)
    assert [verdict.scores["clarity"] for verdict in verify(filled, batch, CLEAR)] == [4, 1, 2, 1]


def test_an_answer_that_can_not_be_read_is_saved() -> None:
    with pytest.raises(JudgeFailed, match=r"not JSON .*; its answer was saved in (?P<path>\S+)") as failed:
        judge("print('I would rather not.')").score(a_file())
    saved = Path(str(failed.value).rpartition(" ")[2])
    assert saved.read_text() == "I would rather not.\n"


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_candidate_changes_no_other_items_score(hostile: str) -> None:
    quiet = judge(BY_RULE).score(a_file())
    filled = judge(BY_RULE).score(with_hostile(hostile))
    assert scores_of_others(filled) == scores_of_others(quiet)
    assert filled["items"][1]["candidate"] == hostile


def test_a_large_file_through_a_program_that_answers_before_it_reads() -> None:
    file = a_file(tuple("word " * 50_000 for _ in range(20)))
    code = "import sys; print(' ' * 200_000, flush=True); sys.stderr.write('x' * 200_000); print(sys.stdin.read())"
    assert judge(code).score(file) == file


def test_secrets_stay_with_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPBENCH_OPENAI_KEY", "sk-secret")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pw-secret")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:uri-secret@host:5000")
    monkeypatch.setenv("OTHER", "other-secret")
    monkeypatch.setenv("NAMED", "is passed on")
    monkeypatch.setenv("TIPBENCH_JUDGE_ENV", "NAMED")
    monkeypatch.setenv("TIPBENCH_JUDGE_WEBHOOK", "http://me:uri-secret@host:5000")
    seen = judge("import json, os; print(json.dumps({**os.environ, 'items': []}))").score(a_file())
    assert (seen["NAMED"], seen["TIPBENCH_JUDGE_WEBHOOK"]) == ("is passed on", "http://host:5000")
    assert not {"MLFLOW_TRACKING_URI", "TIPBENCH_HOME"} & seen.keys(), "the way to what is hidden"
    assert "secret" not in json.dumps(seen)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("print('no file')", "not JSON"),
        ("", "not JSON"),
        ("print([1])", "not an object"),
        (r"import sys; sys.stdout.buffer.write(b'\xff')", "not UTF-8"),
        ("import sys; sys.stderr.write('one\\ntwo\\n\\n'); sys.exit(3)", "ended with status 3: two"),
        ("import sys; sys.exit(4)", "ended with status 4: it wrote nothing to stderr"),
        ("import sys; sys.exit('\\x1b[31mred')", r"ended with status 1: \\u001b\[31mred"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("raise ValueError('no model')", "ended with status 1: ValueError: no model"),
    ],
)
def test_a_program_that_gives_no_file(code: str, says: str) -> None:
    with pytest.raises(JudgeFailed, match=rf"^the judge program \S*python\S* .*{says}") as caught:
        judge(code).score(a_file())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("command", ["/no/such/program --fast", "no-such-program-anywhere", "/", "a\0b"])
def test_a_program_that_can_not_be_run(command: str) -> None:
    with pytest.raises(JudgeFailed, match=r"can't be run: .*; check TIPBENCH_JUDGE_COMMAND"):
        CommandJudge(command, NAME).score(a_file())


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "a judge"
    path.write_bytes(b"\0\1\2")
    path.chmod(0o755)
    with pytest.raises(JudgeFailed, match="can't be run: Exec format error"):
        CommandJudge(shlex.quote(str(path)), NAME).score(a_file())


@pytest.mark.parametrize("command", ["", "  ", "judge 'open"])
def test_a_command_that_is_none(command: str) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_JUDGE_COMMAND"):
        CommandJudge(command, NAME)


def test_there_is_no_shell(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with pytest.raises(JudgeFailed):
        CommandJudge(f"echo x; touch {made}", NAME).score(a_file())
    assert not made.exists()


def test_more_output_than_any_file_has_is_cut_off() -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 1_000_000)"
    with pytest.raises(JudgeFailed, match="more than 50 MB"):
        judge(code).score(a_file())


def test_a_flood_on_stderr_is_ignored() -> None:
    code = "import sys\nfor _ in range(200): sys.stderr.write('x' * 100_000)\nprint('{\"items\": []}')"
    assert judge(code).score(a_file()) == {"items": []}
