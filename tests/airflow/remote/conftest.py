"""An Airflow of the test's making."""

import pytest

from tests.airflow.remote.stand_in import StandIn


@pytest.fixture
def airflow() -> StandIn:
    return StandIn()
