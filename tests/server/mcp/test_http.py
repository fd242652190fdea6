"""The endpoint of the admin server, where the package is missing."""

import sys

import pytest

from tipbench.core.errors import MissingExtra
from tipbench.server.mcp.http import McpEndpoint
from tipbench.server.views.bench import BenchViews
from tipbench.web.tokens import Visitor


def test_without_the_package_it_says_what_to_install(views: BenchViews, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.streamable_http_manager", None)
    with pytest.raises(MissingExtra, match=r"/mcp needs another package: pip install 'tipbench\[mcp\]'"):
        McpEndpoint(views)._manager(Visitor("admin", "person"))
