"""An Airflow of the test's making."""

import pytest

from tests.runners.airflow.stand_in import StandIn


@pytest.fixture
def airflow() -> StandIn:
    return StandIn()
