"""The same store and desk as the admin layer's tests have."""

from tests.server.views.conftest import address, collected, desk, drafts, snapshots, stores

__all__ = ["address", "collected", "desk", "drafts", "snapshots", "stores"]
