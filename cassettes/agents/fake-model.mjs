// A model that knows a few answers by heart, on a free port of the loopback: enough of the Messages API, the Responses
// API, chat completions and Gemini's API for a real agent to hold a conversation without an account. Writes its port to
// the file named first, and to the one named second, if any, a line for each request: when it was asked and for what,
// when the first byte of the answer left, when the last one did (`end`), or when the agent hung up before (`gone`). The
// folder named third, if any, is where notes are written; otherwise the agent's own words say where it works.
//
// What the prompt says decides how it is answered:
//   be silent for N seconds    nothing is sent for so long
//   slowly, in N words         a word each 100 ms
//   endlessly                  words until the agent hangs up
//   in N lines                 a long answer
//   with code                  an answer with a list and a block of code
//   write the note [NAME]      a tool call that needs a permission, after some words with "tell first"
//   call the tool NAME with {…}  a call of a tool whose name ends so, and then what it returned (Claude Code, Codex)
//   (mark X)                   the last answer ends with "Over-X."
import { createServer } from "node:http";
import { appendFileSync, writeFileSync } from "node:fs";

const body = (req) =>
  new Promise((done) => {
    let text = "";
    // A character may be cut in two between pieces.
    req.setEncoding("utf8");
    req.on("data", (piece) => (text += piece));
    req.on("end", () => {
      try {
        done(JSON.parse(text || "{}"));
      } catch {
        done({});
      }
    });
  });

// Everything that was said, as one text.
const said = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? ""));

// What the person said last, as they said it, without what the agent adds.
const reminder = /\n\nTo suggest changes to a file you MUST[^]*$/;
const added = /^(?:<system-reminder>|<session_context>|\[Request interrupted by user[^\]]*\]\s*$)/;
const last = (messages) => {
  const content = messages?.findLast?.((m) => m.role === "user")?.content ?? "";
  if (typeof content === "string") return content.replace(reminder, "");
  return content.map((part) => part.text ?? "").filter((text) => text && !added.test(text)).join("\n").replace(/^\[Request interrupted by user[^\]]*\]\n\n/, "");
};
const now = () => performance.timeOrigin + performance.now();
const log = (line) => process.argv[3] && appendFileSync(process.argv[3], JSON.stringify(line) + "\n");
let requests = 0;
// Notes a request, and gives back how to note what becomes of it.
const note = (path, ask, res) => {
  const id = ++requests;
  const declared = (ask.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? [tool]);
  const tools = declared.map((tool) => tool.name ?? tool.function?.name ?? tool.type);
  log({ event: "asked", t: now(), id, path, tools, last: last(ask.messages ?? ask.input ?? asMessages(ask.contents)) });
  let ended = false;
  res.on("close", () => ended || log({ event: "gone", t: now(), id }));
  return {
    first: () => log({ event: "first", t: now(), id }),
    end: (kind) => {
      if (!ended && !res.destroyed) log({ event: "end", t: now(), id, kind });
      ended = true;
    },
  };
};

// Gemini's messages, with the names of the others.
const asMessages = (contents) => (contents ?? []).map((c) => ({ role: c.role, content: c.parts ?? [] }));

// Words that come one after the other, as long as somebody listens.
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const words = async function* (text, asked, res) {
  const slow = asked.includes("slowly") || asked.includes("endlessly");
  for (const word of text.split(/(?<= )/)) {
    if (slow) await pause(100);
    if (res.destroyed) return;
    yield word;
  }
};
const silence = async (asked) => {
  const seconds = asked.match(/silent for ([\d.]+) seconds/)?.[1];
  if (seconds) await pause(Number(seconds) * 1000);
};

// The note to be written, if the person asks for one and no tool has answered since.
const noteWanted = (asked, answered) => {
  const found = !answered && asked.match(/write the note(?: (\w+))?/);
  return found ? { file: `${found[1] ?? "note"}.txt`, content: "remember the milk\n", told: asked.includes("tell first") } : null;
};

// The tool to be called, if the person names one and it has not returned, or else what it returned. Some agents group
// the tools of a server.
const toolWanted = (messages, tools) => {
  const all = messages ?? [];
  const at = all.findLastIndex?.((m) => m.role === "user" && last([m])) ?? -1;
  const found = at >= 0 && last([all[at]]).match(/call the tool (\w+) with (\{.*\})/);
  if (!found) return {};
  const returned = (m) => (m.type === "function_call_output" ? [m.output] : Array.isArray(m.content) ? m.content.filter((part) => part.type === "tool_result").map((part) => part.content) : []);
  const results = all.slice(at).flatMap(returned);
  if (results.length) return { result: said(results.at(-1)) };
  const flat = (tools ?? []).flatMap((tool) => tool.tools?.map((inner) => ({ ...inner, namespace: tool.name })) ?? [tool]);
  const tool = flat.find(({ name }) => name === found[1] || name?.endsWith(`__${found[1]}`));
  return tool ? { name: tool.name, namespace: tool.namespace, input: JSON.parse(found[2]) } : { result: `there is no tool ${found[1]}` };
};

const withCode = "The limit is off by **one**:\n\n- `parse()` stops too early\n- the test never looks at `<last>`\n\n```rust\nfn parse(text: &str) -> usize {\n    text.lines().count() // not `- 1`\n}\n```\n\nThen run `cargo test`.";
const plainAnswer = (asked, now, answered) => {
  if (now.includes("with code")) return withCode;
  if (now.includes("endlessly")) return "and on ".repeat(3000);
  if (answered) return "The note is written.";
  const lines = now.match(/in (\d+) lines/)?.[1];
  if (lines) return Array.from({ length: Number(lines) }, (_, i) => `${i + 1}. line ${i + 1} of ${lines}`).join("\n") + "\n\nThat was all.";
  const count = now.match(/slowly, in (\d+) words/)?.[1];
  if (now.includes("slowly")) return "One after the other: " + "word ".repeat(Number(count ?? 15)) + "and that is all.";
  return asked.includes("capital of France") ? "The capital of France is Paris." : "I only know a few things by heart.";
};
const answer = (asked, now, answered) => {
  const mark = [...asked.matchAll(/\(mark (\w+)\)/g)].at(-1)?.[1];
  return plainAnswer(asked, now, answered) + (mark ? ` Over-${mark}.` : "");
};

const stream = (res) => {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  return (event, data) => res.write(`event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`);
};

const messages = async (ask, res, noted) => {
  const asked = said(ask.messages);
  const answered = said(ask.messages?.findLast?.((m) => m.role === "user")?.content).includes('"tool_result"') && !last(ask.messages);
  const wanted = said(ask.tools).includes('"Write"') && noteWanted(last(ask.messages), answered);
  const tool = toolWanted(ask.messages, ask.tools);
  const text = tool.result ? `The tool returned: ${tool.result}` : wanted ? "First I write the note." : answer(asked, last(ask.messages), answered);
  const usage = { input_tokens: 12, output_tokens: 7 };
  const message = { id: `msg_${requests}`, type: "message", role: "assistant", model: ask.model, content: [], stop_reason: null, stop_sequence: null, usage };
  if (!ask.stream) {
    res.writeHead(200, { "content-type": "application/json" });
    noted.end("text");
    return res.end(JSON.stringify({ ...message, content: [{ type: "text", text }], stop_reason: "end_turn" }));
  }
  await silence(last(ask.messages));
  const send = stream(res);
  noted.first();
  send("message_start", { message });
  let index = 0;
  if (!tool.name && (!wanted || wanted.told)) {
    send("content_block_start", { index, content_block: { type: "text", text: "" } });
    for await (const word of words(text, last(ask.messages), res)) send("content_block_delta", { index, delta: { type: "text_delta", text: word } });
    if (wanted) send("content_block_stop", { index: index++ });
  }
  if (wanted) {
    const folder = process.argv[4] ?? (said(ask.system) + asked).match(/working directory:? (\/[^\s"\\]+)/i)?.[1] ?? "/tmp";
    const input = { file_path: `${folder}/${wanted.file}`, content: wanted.content };
    send("content_block_start", { index, content_block: { type: "tool_use", id: `toolu_${requests}`, name: "Write", input: {} } });
    send("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: JSON.stringify(input) } });
  }
  if (tool.name) {
    send("content_block_start", { index, content_block: { type: "tool_use", id: `toolu_${requests}`, name: tool.name, input: {} } });
    send("content_block_delta", { index, delta: { type: "input_json_delta", partial_json: JSON.stringify(tool.input) } });
  }
  noted.end(wanted || tool.name ? "tool" : "text");
  send("content_block_stop", { index });
  send("message_delta", { delta: { stop_reason: wanted || tool.name ? "tool_use" : "end_turn", stop_sequence: null }, usage });
  send("message_stop", {});
  res.end();
};

const responses = async (ask, res, noted) => {
  const person = ask.input?.findLastIndex?.((m) => m.role === "user") ?? -1;
  const answered = said(ask.input?.slice?.(person)).includes('"function_call_output"');
  const wanted = said(ask.tools).includes('"exec_command"') && noteWanted(last(ask.input), answered);
  const tool = toolWanted(ask.input, ask.tools);
  const text = tool.result ? `The tool returned: ${tool.result}` : wanted ? "First I write the note." : answer(said(ask.input), last(ask.input), answered);
  await silence(last(ask.input));
  const send = stream(res);
  noted.first();
  const response = { id: `resp_${requests}`, object: "response", status: "in_progress", model: ask.model, output: [] };
  const output = [];
  send("response.created", { response });
  if (!tool.name && (!wanted || wanted.told)) {
    const item = { id: `msg_${requests}`, type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
    send("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } });
    for await (const word of words(text, last(ask.input), res)) send("response.output_text.delta", { item_id: item.id, output_index: 0, content_index: 0, delta: word });
    send("response.output_item.done", { output_index: 0, item });
    output.push(item);
  }
  if (wanted) {
    const call = { cmd: `echo remember the milk > ${wanted.file}`, sandbox_permissions: "require_escalated", justification: "Shall the note be written?" };
    const item = { id: `fc_${requests}`, type: "function_call", status: "completed", call_id: `call_${requests}`, name: "exec_command", arguments: JSON.stringify(call) };
    send("response.output_item.done", { output_index: output.length, item });
    output.push(item);
  }
  if (tool.name) {
    const item = { id: `fc_${requests}`, type: "function_call", status: "completed", call_id: `call_${requests}`, name: tool.name, namespace: tool.namespace, arguments: JSON.stringify(tool.input) };
    send("response.output_item.done", { output_index: output.length, item });
    output.push(item);
  }
  noted.end(wanted || tool.name ? "tool" : "text");
  const usage = { input_tokens: 12, input_tokens_details: null, output_tokens: 7, output_tokens_details: null, total_tokens: 19 };
  send("response.completed", { response: { ...response, status: "completed", output, usage } });
  res.end();
};

// Chat completions, as most other agents ask for them.
const completions = async (ask, res, noted) => {
  const person = ask.messages?.findLastIndex?.((m) => m.role === "user") ?? -1;
  const answered = said(ask.messages?.slice?.(person)).includes('"role":"tool"');
  const note = noteWanted(last(ask.messages), answered);
  const wanted = writer(ask.tools) && note;
  // Without tools, files are written by listing them.
  const listing = note && said(ask.messages).includes("*file listing*") ? `${note.file}\n\`\`\`\n${note.content}\`\`\`\n\n` : "";
  const text = listing + answer(said(ask.messages), last(ask.messages), answered);
  const usage = { prompt_tokens: 12, completion_tokens: 7, total_tokens: 19 };
  const head = { id: `chat_${requests}`, created: 1, model: ask.model };
  const call = wanted && { index: 0, id: `call_${requests}`, type: "function", function: writing(ask, wanted) };
  await silence(last(ask.messages));
  noted.first();
  if (!ask.stream) {
    res.writeHead(200, { "content-type": "application/json" });
    noted.end(wanted ? "tool" : "text");
    const message = wanted ? { role: "assistant", content: null, tool_calls: [call] } : { role: "assistant", content: text };
    return res.end(JSON.stringify({ ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason: wanted ? "tool_calls" : "stop" }], usage }));
  }
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  const send = (delta, finish_reason = null) =>
    res.write(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }], ...(finish_reason && { usage }) })}\n\n`);
  send({ role: "assistant", content: "" });
  if (wanted) send({ tool_calls: [call] });
  else for await (const word of words(text, last(ask.messages), res)) send({ content: word });
  noted.end(wanted ? "tool" : "text");
  send({}, wanted ? "tool_calls" : "stop");
  res.end("data: [DONE]\n\n");
};

// The tool that writes files, by the name that the agent gives it, and a call of it.
const declared = (tools) => (tools ?? []).flatMap((tool) => tool.functionDeclarations ?? [tool.function ?? tool]);
const writer = (tools) => declared(tools).find((tool) => /^(?:write|write_file|write_to_file|create|editor)$/.test(tool.name));
const writing = (ask, wanted) => {
  const tool = writer(ask.tools);
  const folder = process.argv[4] ?? "/tmp";
  const fields = Object.keys(tool.parameters?.properties ?? tool.parametersJsonSchema?.properties ?? {});
  const value = (field) => (/path|file/i.test(field) ? `${folder}/${wanted.file}` : wanted.content);
  const args = Object.fromEntries(fields.filter((field) => /path|file|content|text/i.test(field)).map((field) => [field, value(field)]));
  return { name: tool.name, arguments: JSON.stringify(args) };
};

// Gemini's way of asking, and of being answered.
const contents = async (ask, res, noted) => {
  const asked = asMessages(ask.contents);
  const answered = said(ask.contents?.at?.(-1)).includes('"functionResponse"');
  const wanted = writer(ask.tools) && noteWanted(last(asked), answered);
  const text = answer(said(ask.contents), last(asked), answered);
  await silence(last(asked));
  noted.first();
  const chunk = (parts, finishReason) =>
    JSON.stringify({ candidates: [{ index: 0, content: { role: "model", parts }, finishReason }], usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 } });
  const call = wanted && writing(ask, wanted);
  const parts = wanted ? [{ functionCall: { name: call.name, args: JSON.parse(call.arguments) } }] : [{ text }];
  if (!res.streams) {
    res.writeHead(200, { "content-type": "application/json" });
    noted.end(wanted ? "tool" : "text");
    return res.end(chunk(parts, "STOP"));
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  const send = (parts, finishReason) => res.write(`data: ${chunk(parts, finishReason)}\n\n`);
  if (wanted) send(parts);
  else for await (const word of words(text, last(asked), res)) send([{ text: word }]);
  noted.end(wanted ? "tool" : "text");
  send([{ text: "" }], "STOP");
  res.end();
};

const server = createServer(async (req, res) => {
  const path = req.url.split("?")[0];
  const ask = await body(req);
  const ways = { "/messages": messages, "/responses": responses, "/chat/completions": completions, ":streamGenerateContent": contents, ":generateContent": contents };
  const way = req.method === "POST" && Object.keys(ways).find((end) => path.endsWith(end));
  res.streams = way === ":streamGenerateContent";
  if (way) return ways[way](ask, res, note(path, ask, res));
  const json = (status, value) => {
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify(value));
  };
  if (req.method === "POST" && path.endsWith("/count_tokens")) return json(200, { input_tokens: 12 });
  if (req.method === "POST" && path.endsWith(":countTokens")) return json(200, { totalTokens: 12 });
  if (req.method === "GET" && path.endsWith("/models")) return json(200, { object: "list", data: [{ id: "mock-model", object: "model" }] });
  json(404, { type: "error", error: { type: "not_found_error", message: "not here" } });
});
server.listen(0, "127.0.0.1", () => writeFileSync(process.argv[2], String(server.address().port)));
