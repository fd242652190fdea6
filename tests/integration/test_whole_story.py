"""The whole story: collect, judge, compare; serve the winner's tips; simulate, gate, promote, roll back."""

import json
from pathlib import Path
from typing import Any

import yaml

from tests.integration.command import tipbench
from tests.integration.filling import filled
from tests.integration.recommending import recommending
from tests.recommender.service.asking import reward
from tipbench.server.jobs.simulation_asked import built_in_world

STORE = ("--experiment", "tip-bench-story", "--mlflow-url", "sqlite:///m.db")
ANSWERS = {"great": "Call Ms Roth before 19:00.", "poor": "Drink water."}
WORTH = {"Call": 5, "Drink": 1}
PERSONAS = ["specialist", "night-owl", "indifferent"]


def done(*words: str, cwd: Path) -> str:
    finished = tipbench(*words, cwd=cwd)
    assert finished.status == 0, finished.err
    return finished.out


def a_judge_who_reads(path: Path) -> None:
    """The anchors as they should be, and the models' tips by how they begin."""
    file = filled(json.loads(path.read_text(encoding="utf-8")))
    for item in file["items"]:
        worth = next((worth for start, worth in WORTH.items() if item["candidate"].startswith(start)), None)
        item["scores"] = dict.fromkeys(item["scores"], worth) if worth else item["scores"]
    path.write_text(json.dumps(file), encoding="utf-8")


def winners_tips(folder: Path) -> list[dict[str, Any]]:
    """From nothing to the candidates that the leaderboard's best row wrote."""
    for name, answer in ANSWERS.items():
        (folder / f"{name}.yaml").write_text(f"parameters: 1000000000\nrules:\n  - answer: '[\"{answer}\"]'\n")
    done("collect", "--models", "scripted/great.yaml,scripted/poor.yaml", "--prompts", "v1", *STORE, cwd=folder)
    done("judge", *STORE, "--export", "judge.json", cwd=folder)
    a_judge_who_reads(folder / "judge.json")
    done("judge", *STORE, "--apply", "judge.json", cwd=folder)
    (first, *_) = json.loads(done("compare", *STORE, "--format", "json", cwd=folder))["standings"]
    assert first["model"] == "scripted/great.yaml"
    return [one["candidate"] for one in json.loads(done("recommend", "tips", *STORE, cwd=folder))]


def a_small_world(folder: Path) -> Path:
    """Three of the built-in personas: a gate in seconds."""
    path = folder / "world.yaml"
    path.write_text(yaml.safe_dump(built_in_world().only(PERSONAS).model_dump(mode="json")), encoding="utf-8")
    return path


def test_from_the_first_text_to_a_promotion_and_back(tmp_path: Path, home: Path) -> None:
    tips = winners_tips(tmp_path)
    with recommending() as service, service.client() as client:

        def shown(event: str) -> dict[str, Any]:
            context = {"hour": 9.5, "focus_category": tips[0]["category"]}
            asked = {"user_id": "anna", "event_id": event, "context": context, "candidates": tips}
            answer: dict[str, Any] = client.post("/score", json=asked).raise_for_status().json()
            return answer

        assert shown("e1")["policy"] == "egreedy"
        client.post("/reward", json=reward("e1", 1.0, "anna")).raise_for_status()
        shown("e2")
        (row,) = json.loads(done("recommend", "rewards", *STORE, "--format", "json", cwd=tmp_path))["rows"]
        assert (row["model"], row["served"], row["rewarded"], row["mean_reward"]) == ("scripted/great.yaml", 2, 1, 1.0)

        world = str(a_small_world(tmp_path))
        refused = tipbench("recommend", "promote", "ucb/v3", "--world", world, "--yes", cwd=tmp_path)
        assert refused.status == 2
        assert "no gate has been run for ucb/v3 yet" in refused.err
        gate = json.loads(
            done("sim", "gate", "--candidate", "ucb/v3", "--world", world, "--format", "json", cwd=tmp_path)
        )
        assert gate["gate"]["passed"]
        done("recommend", "promote", "ucb/v3", "--world", world, "--yes", cwd=tmp_path)

        assert client.get("/health").json()["live"] == "ucb/v3"
        assert shown("e3")["policy"] == "ucb/v3"
        late = client.post("/reward", json=reward("e2", 1.0, "anna")).raise_for_status().json()
        assert (late["policy"], late["n"]) == ("egreedy", 2)  # whoever served it learns from it

        done("recommend", "rollback", "--yes", cwd=tmp_path)
        assert shown("e4")["policy"] == "egreedy"
    history = json.loads(done("recommend", "promotions", "--format", "json", cwd=tmp_path))
    assert [(act["act"], act["from"], act["to"]) for act in history["acts"]] == [
        ("promote", "egreedy", "ucb/v3"),
        ("rollback", "ucb/v3", "egreedy"),
    ]
    assert (home / "recommender" / "gates" / f"{history['acts'][0]['gate']}.json").exists()
