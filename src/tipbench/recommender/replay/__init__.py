"""Off-policy evaluation: what another policy would have earned, estimated from the decision log without serving it.

rounds.py reads the log, evaluation.py trains the candidate on its first part and evaluates it on the rest,
estimators.py estimates its mean reward, verdict.py decides whether the evidence is enough, outcome.py runs all of it,
and record.py stores the result.
"""
