"""What several suites share for a whole session."""

import pytest

# So that a failure in these shows what was compared.
pytest.register_assert_rewrite("clirun")

from postgres import execute, server  # noqa: E402


@pytest.fixture(scope="session")
def postgis():
    """Address of a throw-away database with PostGIS."""
    with server() as url:
        execute(url, "CREATE EXTENSION postgis")
        yield url
