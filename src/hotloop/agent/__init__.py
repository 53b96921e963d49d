"""Agents as users: hotloop's tools over the Model Context Protocol (`hotloop mcp`)."""
