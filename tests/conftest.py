"""What several suites share for a whole session."""

import pytest
from postgres import execute, server


@pytest.fixture(scope="session")
def postgis():
    """Address of a throw-away database with PostGIS."""
    with server() as url:
        execute(url, "CREATE EXTENSION postgis")
        yield url
