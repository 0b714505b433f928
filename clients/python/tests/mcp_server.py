"""A real MCP server for the tests: mcp_server.py (stdio) or mcp_server.py PORT (streamable HTTP).

The file that `RUNS` names gets a line for each run of a tool, and the last line when the server has ended.
"""

import atexit
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("files")


def note(text):
    with open(os.environ["RUNS"], "a", encoding="utf-8") as runs:
        runs.write(text + "\n")


class Answer(BaseModel):
    """What the user is asked for."""

    word: str


@server.tool(structured_output=False)
async def read(path: str, ctx: Context) -> str:
    """Reads a file, and tells of its progress."""
    note(path)
    await ctx.report_progress(1, 2)
    return "text of " + path


@server.tool(structured_output=False)
async def ask(ctx: Context) -> str:
    """Asks the user."""
    note("ask")
    answer = await ctx.elicit("A word?", Answer)
    return answer.data.word


if __name__ == "__main__":
    atexit.register(note, "ended")
    note("started")
    if len(sys.argv) == 2:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
