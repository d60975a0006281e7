"""A client of ACP made of the official SDK, with which the tests drive an agent.

    client.py FOLDER COMMAND…
"""

import asyncio
import sys

from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, Implementation, RequestPermissionResponse


class Editor(Client):
    def __init__(self):
        self.said, self.tools, self.asked, self.choose = "", {}, [], "allow_once"

    def on_connect(self, conn):
        pass

    async def session_update(self, session_id, update, **_):
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text
        elif update.session_update in ("tool_call", "tool_call_update"):
            old = self.tools.get(update.tool_call_id, ("", ""))
            self.tools[update.tool_call_id] = (update.title or old[0], update.status or old[1])

    async def request_permission(self, options, session_id, tool_call, **_):
        self.asked.append((tool_call.title, [option.name for option in options]))
        chosen = next(option for option in options if option.kind == self.choose)
        outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=outcome)


async def main(folder, command):
    editor = Editor()
    async with spawn_agent_process(lambda _: editor, *command) as (agent, process):
        who = Implementation(name="sdk", version="1")
        known = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_info=who)
        assert known.protocol_version == 1, known
        assert known.agent_capabilities.prompt_capabilities.embedded_context, known
        session = (await agent.new_session(cwd=folder, mcp_servers=[])).session_id

        async def ask(text):
            editor.said, editor.tools = "", {}
            return (await agent.prompt(session_id=session, prompt=[text_block(text)])).stop_reason

        assert await ask("hello there") == "end_turn"
        assert editor.asked.pop()[0] == "Do you trust this folder?", editor.asked
        assert editor.said == "You said: hello there", editor.said
        assert await ask("100 lines") == "end_turn"
        assert editor.said == "\n".join(f"{n}. line" for n in range(1, 101)), editor.said
        assert await ask("a tool") == "end_turn"
        asked = ("Do you want to proceed?", ["Yes", "Yes, and don't ask again", "No"])
        assert editor.asked.pop() == asked, editor.asked
        assert editor.said == "First **this**.\n\nDone.", editor.said
        assert ("Bash: rm -r build", "completed") in editor.tools.values(), editor.tools
        editor.choose = "reject_once"
        assert await ask("a tool") == "end_turn"
        assert editor.said == "First **this**.\n\nNot done.", editor.said
        assert ("Bash: rm -r build", "failed") in editor.tools.values(), editor.tools
        slow = asyncio.create_task(ask("slow"))
        await asyncio.sleep(1.5)
        await agent.cancel(session_id=session)
        assert await slow == "cancelled"
        assert "row 1" in editor.said and "broken off" in editor.said, editor.said
        editor.said = ""
        await agent.load_session(cwd=folder, session_id=session, mcp_servers=[])
        assert "You said: hello there" in editor.said, editor.said
        try:
            await agent.set_session_mode(session_id=session, mode_id="x")
            raise AssertionError("there are no modes")
        except RequestError as e:
            assert e.code == -32601, e
        await agent.close_session(session_id=session)
    print("ok")


asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2:]), 100))
