"""Judges that are configured in a file: names, settings of their own, and every problem of the file at once."""

from pathlib import Path
from typing import cast

import pytest

from tests.bench.judge.judges.files import CLEAR
from tipbench.bench.engines.interface import Engine
from tipbench.bench.judge.judges.catalog import JudgeParts, check_judge, judge_model, judge_names, make_judge
from tipbench.bench.judge.judges.configured import FILE
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.settings import Settings


def settings(home: Path, text: str | None = None) -> Settings:
    if text is not None:
        (home / FILE).write_text(text)
    return Settings({"TIPBENCH_HOME": str(home), "PATH": "/usr/bin:/bin"})


def parts(own: Settings) -> JudgeParts:
    return JudgeParts(CLEAR, own, lambda _: cast("Engine", None), 0, lambda: 0.0, print)


def test_without_a_file_there_are_the_kinds(tmp_path: Path) -> None:
    assert judge_names(settings(tmp_path)) == ["lexical", "agent", "command", "webhook", "model"]


def test_a_configured_judge_has_its_own_name_and_settings(tmp_path: Path) -> None:
    own = settings(
        tmp_path,
        '[rules]\nrun = "command"\ncommand = "cat"\ntimeout = 7\n\n[big]\nrun = "model"\nmodel = "openai/x"\n'
        '[claude]\nrun = "agent"\nagent = "claude-code --model haiku"\n',
    )
    assert judge_names(own)[5:] == ["rules", "big", "claude"]
    check_judge("rules", own)
    assert make_judge("rules", parts(own)).identity.name == "rules"
    assert make_judge("rules", parts(own), "lena").identity.name == "lena"
    assert make_judge("claude", parts(own)).identity.name == "claude"
    assert (judge_model("big", own), judge_model("rules", own), judge_model(None, own)) == ("openai/x", None, None)
    with pytest.raises(InvalidInput, match="the judge 'command' needs TIPBENCH_JUDGE_COMMAND"):
        check_judge("command", own)
    with pytest.raises(
        InvalidInput, match=r"no judge 'nobody' that can be run; there are lexical, .*, rules, big, claude"
    ):
        check_judge("nobody", own)


def test_every_problem_of_the_file_is_told(tmp_path: Path) -> None:
    own = settings(
        tmp_path, '[agent]\nrun = "agent"\n["a b"]\nrun = "no"\n[x]\nrun = "command"\nsecret = "s"\ncommand = []\n'
    )
    with pytest.raises(Problems) as found:
        judge_names(own)
    text = str(found.value)
    for part in (
        "[agent]: is the name of a kind",
        "judge name 'a b'",
        "[a b] run: must be one of",
        "'secret'",
        "[x] command: must be",
    ):
        assert part in text, text
    with pytest.raises(InvalidInput, match=f"{FILE} can't be read"):
        judge_names(settings(tmp_path, "[x"))
