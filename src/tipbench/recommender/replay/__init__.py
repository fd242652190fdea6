"""What would another policy have earned? Estimated from the decision log, without serving anybody.

rounds.py reads the log, training.py lets the candidate learn from its first part, evaluation.py puts it to the rest,
estimators.py says what that is worth, verdict.py whether it is enough, record.py keeps it.
"""
