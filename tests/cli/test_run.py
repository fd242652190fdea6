"""`tipbench run`: what it tells about itself, and judges that answer later."""

import json
import threading
from pathlib import Path

import pytest

from tests.bench.engines.stand_in import Reply, StandIn
from tests.core.test_locks import held_elsewhere
from tests.integration.command import tipbench
from tipbench.bench.bench import Bench
from tipbench.bench.collect.plan import Collected
from tipbench.core.paths import lock_path
from tipbench.server.jobs.progress import Progress, read_progress


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, ...]:
    return (
        *("run", "--prompts", "v1", "--n-scenarios", "2", "--experiment", "tip-bench-x"),
        *("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}", "--progress", str(tmp_path / "p.json")),
    )


def told(folder: Path) -> Progress:
    found = read_progress(folder / "p.json")
    assert found
    return found


def test_the_progress_file_says_what_came_of_it(words: tuple[str, ...], tmp_path: Path) -> None:
    script = tmp_path / "moody.yaml"
    script.write_text(
        'parameters: 1000000\nrules: [{when: "Marek", fail: "the runner died"}, {when: "Noor", fail: "died too"}]'
    )
    file = tmp_path / "judge.json"
    asked = (*words, "--models", f"scripted/{script}", "--n-scenarios", "3", "--export", str(file))
    done = tipbench(*asked)
    seen = told(tmp_path)
    items = len(json.loads(file.read_text())["items"])
    assert done.status == 1
    assert (seen.phase, seen.experiment, seen.cells, seen.stored) == ("done", "tip-bench-x", 3, 0)
    assert (seen.done, seen.failed, seen.waiting_items) == (3, seen.failed, items)
    assert seen.failed == len(seen.failures) > 0
    assert seen.failures[0].reason == "the runner died"
    answered = 3 - seen.failed
    assert answered == 1
    assert seen.message == f"1 cell answered, {seen.failed} failed; {items} items exported for a judge"


def test_a_judge_that_runs_by_itself_is_told_of(words: tuple[str, ...], tmp_path: Path) -> None:
    assert tipbench(*words, "--models", "scripted/a", "--judge", "lexical").status == 0
    assert told(tmp_path).message == "2 cells answered; 10 candidates scored by 'lexical'"
    assert tipbench(*words, "--models", "scripted/a", "--judge", "lexical").status == 0
    assert told(tmp_path).message == "0 cells answered, 2 stored before; nothing was left for judge 'lexical'"


def test_a_refusal_is_told_in_its_own_words(words: tuple[str, ...], tmp_path: Path) -> None:
    done = tipbench(*words, "--models", "scripted/gone.yaml")
    assert done.status == 2
    seen = told(tmp_path)
    assert seen.phase == "starting"
    assert seen.message in " ".join(done.err.split())
    assert "gone.yaml" in seen.message
    assert tipbench(*words, "--models", "").status == 2
    assert "is empty" in told(tmp_path).message


def test_a_webhook_judge_that_answers_later_does_not_fail_the_run(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandIn() as server:
        server.on("/judge", Reply(b"", 202))
        monkeypatch.setenv("TIPBENCH_JUDGE_WEBHOOK", f"{server.url}/judge")
        monkeypatch.setenv("TIPBENCH_JUDGE_SECRET", "very-s3cret")
        done = tipbench(*words, "--models", "scripted/a", "--judge", "webhook")
        [asked] = server.asked
    assert done.status == 0, done.err
    assert "will answer later" in done.err
    assert "No answer yet: nothing is judged." in done.out
    batch, items = asked.body["batch"], len(asked.body["file"]["items"])
    seen = told(tmp_path)
    assert seen.message == f"2 cells answered; batch {batch} was sent to the webhook judge"
    assert (seen.phase, seen.waiting_items) == ("done", items)


def test_while_another_fills_the_experiment_it_says_that_it_waits(
    words: tuple[str, ...], tmp_path: Path, home: Path
) -> None:
    lock = lock_path(home, "collect", f"sqlite:///{tmp_path / 'm.db'}", "tip-bench-x")
    with held_elsewhere(lock) as other:
        seen: list[Progress] = []

        def watch() -> None:
            while not seen:
                now = read_progress(tmp_path / "p.json")
                if now and now.phase == "waiting":
                    seen.append(now)
            other.kill()

        watching = threading.Thread(target=watch)
        watching.start()
        done = tipbench(*words, "--models", "scripted/a", "--judge", "lexical")
        watching.join()
    assert done.status == 0
    assert seen[0].message.startswith("Another collection is filling experiment 'tip-bench-x'; waiting")
    assert told(tmp_path).phase == "done"


def test_what_mlflow_does_not_have_yet_is_not_judged_and_the_run_says_so(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_given: object, **_how: object) -> Collected:
        return Collected(planned=2, stored_before=0, failed_before=0, answered=2, undelivered=2)

    monkeypatch.setattr(Bench, "_generate", away)
    done = tipbench(*words, "--models", "scripted/a")
    assert done.status == 1
    assert "Look at the runs" not in done.out
    assert "MLflow does not answer: 2 cells of these are only stored on this machine so far." in done.out
    assert "Next: 'tipbench sync'" in done.out
    seen = told(tmp_path)
    assert seen.phase == "done"
    assert "2 not in MLflow yet" in seen.message
    assert "run it again to deliver them" in seen.message
