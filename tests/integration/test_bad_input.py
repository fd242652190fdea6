"""Bad input: one clear message, exit status 2, no traceback, nothing written."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.command import Finished, tipbench, tipbench_process
from tests.integration.filling import fill
from tipbench.bench.suites.load import built_in_suites

NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens there


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def _refused(done: Finished, *words: str) -> None:
    assert done.status == 2, done
    assert done.out == ""
    for word in words:
        assert word in done.err
    # One message: the first line says it; further lines only list problems of the same kind.
    rest = [line for line in done.err.splitlines() if line.strip()][1:]
    assert all(line.startswith(("  - ", "Usage:", "Try ", "Error:")) for line in rest), done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--models", "embedded/nothing"), ("embedded/nothing", "smollm2:135m")),
        (("--models", "scripted/a", "--prompts", "v9"), ("v9", "v1, v2-mentor, v3-few-shot")),
        (("--models", "scripted/a", "--n-scenarios", "9"), ("9", "8")),
        (("--models", "scripted/a", "--n-tips", "0"), ("n_tips", "0")),
        (("--models", "scripted/a", "--n-tips", "many"), ("--n-tips", "many")),
        (("--models", "scripted/a", "--temperature", "nan"), ("temperature",)),
        (("--models", "scripted/a,scripted/a"), ("twice",)),
        (("--models", " , "), ("models",)),
        (("--models", "scripted/a", "--suite", "no-such"), ("no-such", "suite new")),
        (("--models", "scripted/a", "--modles", "x"), ("--modles",)),
        (("--models", "qwen2.5:0.5b", "--ollama-url", NOBODY), (NOBODY, "ollama serve")),
        (("--models", "scripted/a", "--experiment", "a\x1bb"), ("experiment",)),
    ],
)
def test_collect_refuses(arguments: tuple[str, ...], words: tuple[str, ...], store: str, tmp_path: Path) -> None:
    _refused(tipbench("collect", *arguments, "--mlflow-url", store), *words)
    assert not list(tmp_path.iterdir()), "not even an empty database"


def test_an_unreachable_mlflow_is_named_and_nothing_is_generated() -> None:
    _refused(tipbench("collect", "--models", "scripted/a", "--mlflow-url", NOBODY), NOBODY, "mlflow server")


def test_the_password_in_an_address_is_not_shown() -> None:
    done = tipbench("compare", "--mlflow-url", "http://me:hunter2@127.0.0.1:9")
    assert done.status == 2
    assert "hunter2" not in done.err + done.out


@pytest.mark.parametrize("url", ["postgres://x", "sqlite:///", "nonsense", "sqlite:////no/such/folder/m.db"])
def test_an_address_that_is_none(url: str) -> None:
    _refused(tipbench("compare", "--mlflow-url", url), url.split("/")[0].rstrip(":"))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "m.db").write_text("this is no database, " * 100)
    _refused(tipbench("compare", "--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}"), "m.db")


@pytest.mark.parametrize("command", [("judge", "--export", "j.json"), ("judge", "--run", "lexical"), ("compare",)])
def test_an_unknown_experiment(command: tuple[str, ...], store: str, tmp_path: Path) -> None:
    words = (*command, "--experiment", "tip-bench-none", "--mlflow-url", store)
    _refused(tipbench(*words, cwd=tmp_path), "no results yet", "tipbench collect")
    assert not list(tmp_path.iterdir())
    there = ("--experiment", "tip-bench-there", "--mlflow-url", store)
    assert tipbench("collect", "--models", "scripted/a", "--n-scenarios", "1", *there).status == 0
    _refused(tipbench(*words, cwd=tmp_path), "tip-bench-none", "tipbench experiments")
    assert not (tmp_path / "j.json").exists()


def test_models_that_are_missing_or_too_large_come_in_one_message(tmp_path: Path, store: str) -> None:
    (tmp_path / "large-1b.yaml").write_text("parameters: 9000000000")
    (tmp_path / "gone.yaml").write_text("missing: true")
    (tmp_path / "unknown.yaml").write_text("rules: []")
    models = ",".join(f"scripted/{tmp_path / name}.yaml" for name in ("large-1b", "gone", "unknown"))
    done = tipbench("collect", "--models", models, "--mlflow-url", store)
    _refused(done, "9.00 billion", "is missing", "size is unknown", "0 removes the limit (max_model_b)")


def test_a_suite_with_a_typo_is_refused_with_file_and_line(tmp_path: Path, store: str) -> None:
    suite = tmp_path / "mine"
    shutil.copytree(built_in_suites()["tip"], suite)
    prompt = suite / "prompts" / "v1.md"
    prompt.write_text(prompt.read_text(encoding="utf-8").replace("{{ scenario }}", "{{ scenaro }}"), encoding="utf-8")
    line = next(n for n, text in enumerate(prompt.read_text().splitlines(), start=1) if "scenaro" in text)
    for command in (("suite", "check", str(suite)), ("collect", "--suite", str(suite), "--mlflow-url", store)):
        _refused(tipbench(*command), f"prompts/v1.md:{line}", "scenaro")


def test_a_config_file_with_a_wrong_key(tmp_path: Path) -> None:
    config = tmp_path / "bench.yaml"
    config.write_text("n_tipps: 3\ntemperature: hot\n")
    _refused(tipbench("collect", "--config", str(config)), "n_tipps", "temperature", "hot")


def _cut(text: str) -> str:
    return text[: len(text) // 2]


def _out_of_range(text: str) -> str:
    data = json.loads(text)
    data["items"][2]["scores"]["tone"] = 6
    return json.dumps(data)


def _other_batch(text: str) -> str:
    return json.dumps({**json.loads(text), "batch": "0" * 16})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_cut, ("not JSON",)),
        (_out_of_range, ("items[2]", "tone", "6", "1–5")),
        (_other_batch, ("no batch", "0000")),
        (lambda _: "[]", ("not a judge file",)),
    ],
)
def test_a_corrupt_judge_file_changes_nothing(
    spoil: Callable[[str], str], words: tuple[str, ...], store: str, tmp_path: Path
) -> None:
    common = ("--experiment", "tip-bench-x", "--mlflow-url", store)
    file = tmp_path / "judge.json"
    assert tipbench("collect", "--models", "scripted/a", "--n-scenarios", "1", *common).status == 0
    assert tipbench("judge", "--export", str(file), *common).status == 0
    fill(file)
    file.write_text(spoil(file.read_text(encoding="utf-8")), encoding="utf-8")
    before = tipbench("compare", "--format", "json", *common).out
    _refused(tipbench("judge", "--apply", str(file), *common), *words)
    assert tipbench("compare", "--format", "json", *common).out == before
    assert json.loads(before)["cells"]["judged"] == 0


def test_an_export_never_overwrites_a_file_that_may_hold_scores(store: str, tmp_path: Path) -> None:
    common = ("--experiment", "tip-bench-x", "--mlflow-url", store)
    file = tmp_path / "judge.json"
    file.write_text("precious")
    assert tipbench("collect", "--models", "scripted/a", "--n-scenarios", "1", *common).status == 0
    _refused(tipbench("judge", "--export", str(file), *common), "judge.json", "exists")
    assert file.read_text() == "precious"


@pytest.mark.parametrize("words", [(), ("--export", "a.json", "--apply", "a.json")])
def test_judge_wants_exactly_one_thing_to_do(words: tuple[str, ...], store: str) -> None:
    done = tipbench("judge", *words, "--mlflow-url", store)
    assert done.status == 2
    assert "--export FILE, --apply FILE, --run NAME or --status" in done.err


def test_from_a_shell_too_there_is_a_message_and_no_traceback(store: str) -> None:
    _refused(tipbench_process("collect", "--models", "scripted/a", "--prompts", "v9", "--mlflow-url", store), "v9")


def test_a_database_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as theirs:
        theirs.execute("CREATE TABLE precious (x)")
    before = (tmp_path / "theirs.db").read_bytes()
    for command in (("compare",), ("collect", "--models", "scripted/a")):
        _refused(tipbench(*command, "--mlflow-url", f"sqlite:///{tmp_path / 'theirs.db'}"), "is not an MLflow database")
    assert (tmp_path / "theirs.db").read_bytes() == before


def test_two_prompts_that_ask_the_same_are_refused(tmp_path: Path, store: str) -> None:
    suite = tmp_path / "mine"
    shutil.copytree(built_in_suites()["tip"], suite)
    shutil.copy(suite / "prompts" / "v1.md", suite / "prompts" / "v1-again.md")
    done = tipbench(
        "collect", "--suite", str(suite), "--models", "scripted/a", "--prompts", "v1,v1-again", "--mlflow-url", store
    )
    _refused(done, "v1-again", "exactly the same")
