"""A prior comes from the log, from nothing else, and always the same."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.parts.logged_lives import drawn_users, write_log

from tipbench.core.errors import InvalidInput, NotFound, StateDamaged, StateRefused
from tipbench.recommender.features.v3 import DENSE, NAMES
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.log.segmented_log import entries
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.posterior import WeightedSums
from tipbench.recommender.prior.em import UserSums, fit_users
from tipbench.recommender.prior.files import FilePriors
from tipbench.recommender.prior.fit import TipRewards, fit_prior
from tipbench.recommender.promotion.immutable_records import encode_record
from tipbench.recommender.replay.rounds import load_rounds
from tipbench.server.jobs.simulation_asked import built_in_world


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decisions")
    write_log(folder, drawn_users(built_in_world(), 12, 15, 3), POLICIES["egreedy/v2"])
    return folder


def written(folder: Path, lines: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def user_of(line: dict[str, Any]) -> str:
    return str(line["request"]["user_id"] if line["kind"] == "decision" else line["user_id"])


def test_the_same_log_gives_the_same_bytes(log: Path, tmp_path: Path) -> None:
    first, again = (encode_record(fit_prior(log, 2)) for _ in range(2))
    assert first == again
    lines = list(entries(log))
    rewards_first = sorted(lines, key=lambda line: line["kind"] != "reward")
    assert encode_record(fit_prior(written(tmp_path / "other", rewards_first), 2)) == first


def test_a_user_who_was_reset_leaves_no_trace(log: Path, tmp_path: Path) -> None:
    lines = list(entries(log))
    gone = user_of(lines[0])
    without = [line for line in lines if user_of(line) != gone]
    reset = {"schema": 1, "kind": "reset", "at_ms": 10**13, "user_id": gone, "policies": []}
    expected = encode_record(fit_prior(written(tmp_path / "without", without), 2))
    assert encode_record(fit_prior(written(tmp_path / "reset", [*lines, reset]), 2)) == expected
    assert encode_record(fit_prior(log, 2)) != expected


def test_what_comes_after_a_reset_counts(log: Path, tmp_path: Path) -> None:
    lines = list(entries(log))
    reset = {"schema": 1, "kind": "reset", "at_ms": 1, "user_id": user_of(lines[0]), "policies": []}
    assert fit_prior(written(tmp_path / "early", [reset, *lines]), 2) == fit_prior(log, 2)


def test_too_few_users_are_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"rewards of 12 users, and a prior takes 100; serve more .* --min-users"):
        fit_prior(log)
    with pytest.raises(InvalidInput, match="has rewards of 0 users, and a prior takes 1;"):
        fit_prior(tmp_path, 0)


def test_without_users_it_is_a_ridge_of_one() -> None:
    fitted = fit_users([])
    assert (fitted.mean.tolist(), fitted.intercept_precision, fitted.noise) == ([0.0] * DENSE, 1.0, 1.0)
    np.testing.assert_array_equal(fitted.precision, np.eye(DENSE))


def test_it_finds_the_population_that_users_were_drawn_from() -> None:
    """400 users of 60 rewards, whose coefficients of the first three features are drawn from a known distribution."""
    generator = np.random.default_rng(1)
    users = []
    for _ in range(400):
        state = UserSums(WeightedSums())
        taste = generator.normal((0.2, -0.5, 0.8), (0.3, 0.2, 0.4))
        intercepts = generator.normal(0, 0.5, 4)
        for number in range(4):
            state.sums.shown.add(f"c{number}", 1)
        numbers = list(state.sums.shown._slots)
        for at_ms in range(1, 61):
            row = np.zeros(DENSE + 1)
            row[:3] = 1.0, *generator.uniform(-1, 1, 2)
            slot = int(generator.integers(0, 4))
            row[DENSE] = numbers[slot]
            state.learn(row, float(row[:3] @ taste + intercepts[slot] + generator.normal(0, 0.4)), at_ms)
        users.append(state)
    fitted = fit_users(users)
    deviations = np.sqrt(fitted.noise * np.diag(np.linalg.inv(fitted.precision)))
    np.testing.assert_allclose(fitted.mean[:3], (0.2, -0.5, 0.8), atol=0.08)
    np.testing.assert_allclose(deviations[1:3], (0.2, 0.4), atol=0.05)
    assert np.sqrt(fitted.noise / fitted.intercept_precision) == pytest.approx(0.5, abs=0.05)
    assert np.sqrt(fitted.noise) == pytest.approx(0.4, abs=0.02)


def test_a_tips_reward_is_what_others_made_of_it(log: Path) -> None:
    rounds = load_rounds(log, for_weights=False)
    rewards = TipRewards(rounds)
    lines = list(rounds.read(np.ones(len(rounds), dtype=np.bool_)))
    tip, user = lines[0].request.candidates[lines[0].chosen].id, lines[0].user
    own = [one.reward for one in lines if one.request.candidates[one.chosen].id == tip]
    others = [one.reward for one in lines if one.request.candidates[one.chosen].id == tip and one.user != user]
    mean = float(np.mean([one.reward for one in lines]))
    assert rewards.mean == pytest.approx(mean)
    assert rewards.shrunk()[tip] == pytest.approx((sum(own) - len(own) * mean) / (len(own) + 10))
    assert rewards.without(user, tip) == pytest.approx((sum(others) - len(others) * mean) / (len(others) + 10))


def test_decisions_that_nobody_can_weight_teach_too(tmp_path: Path) -> None:
    write_log(tmp_path, drawn_users(built_in_world(), 3, 5, 3), POLICIES["linucb"])
    assert len(load_rounds(tmp_path)) == 0
    assert fit_prior(tmp_path, 3)["rewards"] == 15


def test_a_stored_prior_is_read_only_and_what_was_fitted(log: Path, tmp_path: Path) -> None:
    priors = FilePriors(tmp_path / "priors")
    content = fit_prior(log, 2)
    digest = priors.put(content)
    assert priors.put(content) == digest
    [path] = (tmp_path / "priors").iterdir()
    assert path.stat().st_mode & 0o777 == 0o400
    record = priors.read(digest)
    assert record.content == content
    assert priors.digests() == [digest]
    assert record.prior.digest == digest
    assert list(record.deviations) == list(NAMES[:DENSE])


def test_a_prior_that_is_not_one_is_refused(log: Path, tmp_path: Path) -> None:
    priors = FilePriors(tmp_path)
    content = fit_prior(log, 2)
    digest = priors.put(content)
    with pytest.raises(NotFound, match=f"there is no prior {'0' * 16} in .*prior list"):
        priors.read("0" * 16)
    with pytest.raises(InvalidInput, match="is not a record id"):
        priors.read("../../key")
    foreign: list[dict[str, Any]] = [
        {"feature_version": "v4"},
        {"noise": 0.0},
        {"precision": [-one for one in content["precision"]]},
        {"mean": {**content["mean"], "bias": 0.0, "more": 1.0}},
        {"mean": dict(reversed(content["mean"].items()))},
        {"tips": {"t": 3.0}},
        {"more": 1},
    ]
    for change in foreign:
        with pytest.raises(StateRefused, match="is not a prior that this version of tipbench can use with features v3"):
            priors.read(priors.put(content | change))
    path = tmp_path / f"{digest}.json"
    path.chmod(0o600)
    path.write_text(path.read_text().replace('"users": 12', '"users": 13'))
    with pytest.raises(StateDamaged, match="was changed after it was written"):
        priors.read(digest)


def test_a_reset_is_logged_before_anything_is_deleted(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path, lambda: 7.0)
    log.log_reset("u1", ["egreedy"])
    log.close()
    assert [line["at_ms"] for line in entries(tmp_path)] == [7000]
