"""The category alone, as one number that stands for its name: all that the baseline knows of a candidate."""

from functools import lru_cache

from tipbench.core.identity import text_digest
from tipbench.recommender.features.interface import Features
from tipbench.recommender.records import Request

_DIGITS = 13  # 52 bits, which a float holds exactly


def rows(request: Request) -> list[list[float]]:
    return [[number_of(candidate.category)] for candidate in request.candidates]


@lru_cache(maxsize=4096)
def number_of(category: str) -> float:
    return float(int(text_digest(category)[:_DIGITS], 16))


CATEGORY = Features("category", ("category",), rows)
