"""A dashboard that answers in this process."""

import pytest
from starlette.testclient import TestClient

from hotloop.cli.serve import make_dashboard


@pytest.fixture
def browse(tmp_path):
    """Return a client of the dashboard of `tmp_path`, as a browser on this machine."""
    dashboard = make_dashboard(tmp_path)
    with TestClient(dashboard.app, base_url="http://127.0.0.1:8765") as client:
        yield client
