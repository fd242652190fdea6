"""Which of the candidates should this user see now? Contextual bandits, usable without any server.

A `Recommender` over a store and a decision log scores requests and takes rewards; docs/recommender.md shows how.
"""

from tipbench.bandit.decisions import DecisionLog
from tipbench.bandit.history import History
from tipbench.bandit.policies.catalog import POLICIES, SERVED
from tipbench.bandit.recommender import Answer, Outcome, Recommender, Stats
from tipbench.bandit.records import Candidate, CategoryProfile, Context, Profile, Request, Reward, Source
from tipbench.bandit.store.files import FileStore

__all__ = [
    "POLICIES",
    "SERVED",
    "Answer",
    "Candidate",
    "CategoryProfile",
    "Context",
    "DecisionLog",
    "FileStore",
    "History",
    "Outcome",
    "Profile",
    "Recommender",
    "Request",
    "Reward",
    "Source",
    "Stats",
]
