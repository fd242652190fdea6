"""The Open Bandit Pipeline's estimators, on logs in a folder and on two that it makes itself.

It answers with a line: what each estimator says of each log, and what is true, where that is known.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.bandit_log import BanditLog, read_log
from benchmarks.parts.contenders.no_torch import stand_in_for_torch

SEED = 12345


def digits_of_its_readme() -> tuple[BanditLog, float]:
    from obp.dataset import MultiClassToBanditReduction
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    images, digits = load_digits(return_X_y=True)
    base = LogisticRegression(random_state=SEED, max_iter=10_000)
    data = MultiClassToBanditReduction(images, digits, base_classifier_b=base, alpha_b=0.8)
    data.split_train_eval(eval_size=0.7, random_state=SEED)
    feedback = data.obtain_batch_bandit_feedback(random_state=SEED)
    forest = RandomForestClassifier(random_state=SEED)
    asked = data.obtain_action_dist_by_eval_policy(base_classifier_e=forest, alpha_e=1.0)
    return _log(feedback, asked), float(data.calc_ground_truth_policy_value(action_dist=asked))


def synthetic() -> tuple[BanditLog, float]:
    from obp.dataset import SyntheticBanditDataset, logistic_reward_function
    from obp.policy import IPWLearner
    from sklearn.linear_model import LogisticRegression

    data = SyntheticBanditDataset(
        n_actions=10, dim_context=5, beta=-1.0, reward_function=logistic_reward_function, random_state=SEED
    )
    first, rest = data.obtain_batch_bandit_feedback(5_000), data.obtain_batch_bandit_feedback(10_000)
    learner = IPWLearner(n_actions=10, base_classifier=LogisticRegression(random_state=SEED))
    learner.fit(context=first["context"], action=first["action"], reward=first["reward"], pscore=first["pscore"])
    asked = learner.predict(context=rest["context"])
    return _log(rest, asked), float(data.calc_ground_truth_policy_value(rest["expected_reward"], asked))


def _log(feedback: dict[str, Any], asked: Any) -> BanditLog:
    """With its own model of rewards, cross-fitted."""
    from obp.ope import RegressionModel
    from sklearn.linear_model import LogisticRegression

    model = RegressionModel(n_actions=10, base_model=LogisticRegression(random_state=SEED, max_iter=10_000))
    expected = model.fit_predict(
        context=feedback["context"],
        action=feedback["action"],
        reward=feedback["reward"],
        n_folds=3,
        random_state=SEED,
    )
    logged = np.repeat(feedback["pscore"][:, None], 10, axis=1)  # of the logged action, which is all that is used
    return BanditLog(feedback["action"], feedback["reward"], logged, asked[:, :, 0], expected[:, :, 0])


def estimates(log: BanditLog) -> dict[str, float]:
    from obp.ope import DoublyRobust, InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting

    given = {
        "reward": log.reward,
        "action": log.action,
        "position": np.zeros(len(log.action), dtype=int),
        "pscore": log.of_action(log.logged),
        "action_dist": log.asked[:, :, None],
    }
    modelled = {**given, "estimated_rewards_by_reg_model": log.expected[:, :, None]}
    return {
        "IPS": float(InverseProbabilityWeighting().estimate_policy_value(**given)),
        "SNIPS": float(SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**given)),
        "DR": float(DoublyRobust().estimate_policy_value(**modelled)),
    }


def main() -> None:
    stand_in_for_torch()
    warnings.simplefilter("ignore")  # of packages that are newer than obp
    folder = Path(sys.argv[1])
    truths = {}
    for name, made in (("obp's digits", digits_of_its_readme), ("obp's synthetic data", synthetic)):
        log, truths[name] = made()
        log.write(folder / f"{name}.npz")
    found = {path.stem: estimates(read_log(path)) for path in sorted(folder.glob("*.npz"))}
    print(json.dumps({"estimates": found, "truths": truths}))


if __name__ == "__main__":
    main()
