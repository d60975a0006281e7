"""A client of MCP made of the official SDK. It obeys lines of JSON on standard input, and answers
each with a line: {"ok": …} or {"error": …}.

    client.py legacy|auto stdio COMMAND…
    client.py legacy|auto http URL TOKEN
"""

import json
import os
import sys

import anyio
import httpx2
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

updates = {}


async def note(message):
    if type(message).__name__ == "ResourceUpdatedNotification":
        updates.setdefault(str(message.params.uri), anyio.Event()).set()


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def follow(client, asked):
    """Subscribes, changes something by a call, and waits for the news of it."""
    uri, change = asked["uri"], asked["call"]
    with anyio.fail_after(20):
        if client.protocol_version >= "2026-07-28":
            async with client.listen(resource_subscriptions=[uri]) as news:
                await client.call_tool(change["tool"], change["args"])
                async for event in news:
                    return {"updated": str(event.uri)}
        updates.pop(uri, None)
        await client.subscribe_resource(uri)
        await client.call_tool(change["tool"], change["args"])
        await updates.setdefault(uri, anyio.Event()).wait()
        await client.unsubscribe_resource(uri)
        return {"updated": uri}


async def obey(client, asked):
    match asked["op"]:
        case "info":
            return {"version": client.protocol_version, "instructions": client.instructions}
        case "tools":
            return plain(await client.list_tools())
        case "call":
            return plain(await client.call_tool(asked["tool"], asked["args"]))
        case "cancel":
            with anyio.move_on_after(asked["after"]) as scope:
                return plain(await client.call_tool(asked["tool"], asked["args"]))
            return {"cancelled": scope.cancelled_caught}
        case "together":
            answers = {}

            async def call(name, args):
                answers[name] = plain(await client.call_tool(name, args))
                answers.setdefault("order", []).append(name)

            async with anyio.create_task_group() as group:
                for one in asked["calls"]:
                    group.start_soon(call, one["tool"], one["args"])
            return answers
        case "resources":
            return plain(await client.list_resources())
        case "templates":
            return plain(await client.list_resource_templates())
        case "read":
            return plain(await client.read_resource(asked["uri"]))
        case "prompts":
            return plain(await client.list_prompts())
        case "prompt":
            return plain(await client.get_prompt(asked["name"], asked["args"]))
        case "follow":
            return await follow(client, asked)


async def main(mode, way, *rest):
    if way == "stdio":
        server = StdioServerParameters(command=rest[0], args=list(rest[1:]), env=dict(os.environ))
        await serve(mode, server)
    else:
        headers = {"Authorization": f"Bearer {rest[1]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            await serve(mode, streamable_http_client(rest[0], http_client=http))


async def serve(mode, server):
    name = Implementation(name="sdk test", version="1")
    async with Client(server, mode=mode, client_info=name, message_handler=note, cache=None) as client:
        print(json.dumps({"ok": "ready"}), flush=True)
        while line := await anyio.to_thread.run_sync(sys.stdin.readline):
            try:
                answer = {"ok": await obey(client, json.loads(line))}
            except Exception as e:
                answer = {"error": f"{type(e).__name__}: {e}"}
            print(json.dumps(answer), flush=True)


anyio.run(main, *sys.argv[1:])
