"""Contextual bandits that choose which candidate a user sees now; usable as a library, without any server.

A `Recommender` scores requests and learns from rewards, on top of a store and a decision log; see docs/recommender.md.
"""

from tipbench.recommender.history import History
from tipbench.recommender.log.decisions import DecisionLog
from tipbench.recommender.policies.catalog import POLICIES, SERVED
from tipbench.recommender.recommender import Answer, Outcome, Recommender, Stats
from tipbench.recommender.records import Candidate, CategoryProfile, Context, Profile, Request, Reward, Source
from tipbench.recommender.store.files import FileStore

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
