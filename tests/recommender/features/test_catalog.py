"""The versions of the features."""

import pytest

from tests.recommender.making import a_profile, a_request, candidates
from tipbench.recommender.features.catalog import FEATURES


def test_the_contracts_dimensions() -> None:
    assert {version: features.dimensions for version, features in FEATURES.items()} == {
        "v1": 7,
        "v2": 12,
        "category": 1,
    }


@pytest.mark.parametrize("version", FEATURES)
@pytest.mark.parametrize("count", [1, 200])
def test_a_row_a_candidate(version: str, count: int) -> None:
    features = FEATURES[version]
    assert features.matrix(a_request(of=candidates(count), profile=a_profile())).shape == (count, features.dimensions)
