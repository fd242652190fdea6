"""The MCP server: what an agent can do with the bench, over stdio and over HTTP."""
