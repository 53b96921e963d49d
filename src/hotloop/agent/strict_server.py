"""An MCP server that refuses arguments which a tool has not.

The SDK leaves them out without a word, so that a misspelt one looks as if it had been heeded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


class StrictServer(MCPServer[Any]):
    """`known` names the arguments of each tool; set it once all tools are added."""

    known: Mapping[str, Sequence[str]] = {}

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
        """Call a tool by name.

        Raises:
            ToolError: it fails, or has no argument of a name that was given.
        """
        known = self.known.get(name)
        unknown = sorted(set(arguments) - set(known or ()))
        if known is not None and unknown:
            has = ", ".join(known) or "none"
            raise ToolError(f"{name} has no argument {unknown[0][:80]!r}; it takes: {has}")
        return await super().call_tool(name, arguments, context)
