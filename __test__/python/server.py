"""Servers of the official Python SDK over HTTP. The argument says which: stateful, stateless, json or polling.

It says its address on standard output, and leaves with the end of its input.
"""

import os
import socket
import sys
import threading

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.streamable_http import EventMessage, EventStore

server = MCPServer("python-http", instructions="Adds numbers.")


@server.tool()
def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@server.tool()
async def progress(steps: int, ctx: Context) -> str:
    """Takes its time, and tells how far it is."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"{steps} steps"


@server.tool()
async def poll(ctx: Context) -> str:
    """Closes the stream of its answer, twice, and answers to whoever comes back for it."""
    for time in (1, 2):
        await ctx.report_progress(time, 2)
        await ctx.close_sse_stream()
        await anyio.sleep(0.3)
    return "polled"


class Events(EventStore):
    """All events of all streams, in order; an event's id is its place."""

    def __init__(self):
        self.events = []

    async def store_event(self, stream_id, message):
        self.events.append((stream_id, message))
        return str(len(self.events))

    async def replay_events_after(self, last_event_id, send_callback):
        last = int(last_event_id)
        stream = self.events[last - 1][0]
        for place, (stream_id, message) in enumerate(list(self.events), 1):
            if place > last and stream_id == stream and message is not None:
                await send_callback(EventMessage(message, str(place)))
        return stream


KINDS = {
    "stateful": {},
    "stateless": {"stateless_http": True},
    "json": {"json_response": True},
    "polling": {"event_store": Events(), "retry_interval": 100},
}


def end_with_input():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_input, daemon=True).start()
listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
app = server.streamable_http_app(**KINDS[sys.argv[1]])
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
