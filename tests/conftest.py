"""Fixtures that all tests may use, and how tests share the one deployed cloud."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.support.tenancy", "tests.support.services", "tests.support.canaries"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the deployed cloud are marked, and run in one process (`-n … --dist loadgroup`): it is started once."""
    for item in items:
        if "local_cloud" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.local_cloud)
        # Those that start clouds of their own stay there too: two deployments at once leave neither a core.
        if "local_cloud" in getattr(item, "fixturenames", ()) or "e2e" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("local_cloud"))
