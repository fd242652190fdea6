"""The population prior: what is known about users whom nothing is known about yet.

interface.py says what a prior is and where priors are stored, fit.py fits one to the decision log.
"""
