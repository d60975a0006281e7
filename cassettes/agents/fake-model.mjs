// A model that knows a few answers by heart, on a free port of the loopback: enough of the Messages API and of the
// Responses API for a real agent to hold a conversation without an account. Writes its port to the file named first, and
// to the one named second, if any, a line for each thing that it was asked.
import { createServer } from "node:http";
import { appendFileSync, writeFileSync } from "node:fs";

const body = (req) =>
  new Promise((done) => {
    let text = "";
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

// What the person said last, as they said it.
const last = (messages) => {
  const content = messages?.findLast?.((m) => m.role === "user")?.content ?? "";
  if (typeof content === "string") return content;
  return content.map((part) => part.text ?? "").filter((text) => text && !text.startsWith("<system-reminder>")).join("\n");
};
const note = (path, ask) => {
  if (!process.argv[3]) return;
  const tools = (ask.tools ?? []).map((tool) => tool.name ?? tool.type);
  appendFileSync(process.argv[3], JSON.stringify({ path, tools, last: last(ask.messages ?? ask.input) }) + "\n");
};

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

const answer = (asked, now) => {
  if (now.includes("endlessly")) return "and on ".repeat(3000);
  if (now.includes("slowly")) return "One after the other: " + "word ".repeat(15) + "and that is all.";
  if (asked.includes("tool_result") || asked.includes("function_call_output")) return "The note is written.";
  return asked.includes("capital of France") ? "The capital of France is Paris." : "I only know a few things by heart.";
};

const stream = (res) => {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  return (event, data) => res.write(`event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`);
};

const messages = async (ask, res) => {
  const asked = said(ask.messages);
  const wantsTool = asked.includes("write the note") && !asked.includes("tool_result") && said(ask.tools).includes('"Write"');
  const text = answer(asked, last(ask.messages));
  const usage = { input_tokens: 12, output_tokens: 7 };
  const message = { id: "msg_1", type: "message", role: "assistant", model: ask.model, content: [], stop_reason: null, stop_sequence: null, usage };
  const stop = wantsTool ? "tool_use" : "end_turn";
  if (!ask.stream) {
    res.writeHead(200, { "content-type": "application/json" });
    return res.end(JSON.stringify({ ...message, content: [{ type: "text", text }], stop_reason: "end_turn" }));
  }
  const send = stream(res);
  send("message_start", { message });
  if (wantsTool) {
    const folder = (said(ask.system) + asked).match(/working directory:? (\/[^\s"\\]+)/i)?.[1] ?? "/tmp";
    const input = { file_path: `${folder}/note.txt`, content: "remember the milk\n" };
    send("content_block_start", { index: 0, content_block: { type: "tool_use", id: "toolu_1", name: "Write", input: {} } });
    send("content_block_delta", { index: 0, delta: { type: "input_json_delta", partial_json: JSON.stringify(input) } });
  } else {
    send("content_block_start", { index: 0, content_block: { type: "text", text: "" } });
    for await (const word of words(text, last(ask.messages), res)) send("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } });
  }
  send("content_block_stop", { index: 0 });
  send("message_delta", { delta: { stop_reason: stop, stop_sequence: null }, usage });
  send("message_stop", {});
  res.end();
};

const responses = async (ask, res) => {
  const text = answer(said(ask.input), last(ask.input));
  const send = stream(res);
  const response = { id: "resp_1", object: "response", status: "in_progress", model: ask.model, output: [] };
  const wantsTool = last(ask.input).includes("write the note") && !said(ask.input).includes("function_call_output") && said(ask.tools).includes('"exec_command"');
  const call = { cmd: "echo remember the milk > note.txt", sandbox_permissions: "require_escalated", justification: "Shall the note be written?" };
  const item = wantsTool
    ? { id: "fc_1", type: "function_call", status: "completed", call_id: "call_1", name: "exec_command", arguments: JSON.stringify(call) }
    : { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
  send("response.created", { response });
  if (!wantsTool) send("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } });
  if (!wantsTool) for await (const word of words(text, last(ask.input), res)) send("response.output_text.delta", { item_id: "msg_1", output_index: 0, content_index: 0, delta: word });
  send("response.output_item.done", { output_index: 0, item });
  const usage = { input_tokens: 12, input_tokens_details: null, output_tokens: 7, output_tokens_details: null, total_tokens: 19 };
  send("response.completed", { response: { ...response, status: "completed", output: [item], usage } });
  res.end();
};

// Gemini's way of asking, and of being answered.
const contents = async (ask, res) => {
  const asked = (ask.contents ?? []).map((c) => ({ role: c.role, content: c.parts ?? [] }));
  const text = answer(said(ask.contents), last(asked));
  res.writeHead(200, { "content-type": "text/event-stream" });
  const send = (part, finishReason) =>
    res.write(`data: ${JSON.stringify({ candidates: [{ index: 0, content: { role: "model", parts: [{ text: part }] }, finishReason }], usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 7, totalTokenCount: 19 } })}\n\n`);
  for await (const word of words(text, last(asked), res)) send(word);
  send("", "STOP");
  res.end();
};

const server = createServer(async (req, res) => {
  const path = req.url.split("?")[0];
  const ask = await body(req);
  if (req.method === "POST") note(path, ask);
  if (req.method === "POST" && path.endsWith("/messages")) return messages(ask, res);
  if (req.method === "POST" && path.endsWith("/responses")) return responses(ask, res);
  if (req.method === "POST" && path.endsWith(":streamGenerateContent")) return contents(ask, res);
  if (req.method === "POST" && path.endsWith("/count_tokens")) {
    res.writeHead(200, { "content-type": "application/json" });
    return res.end(JSON.stringify({ input_tokens: 12 }));
  }
  res.writeHead(404, { "content-type": "application/json" });
  res.end(JSON.stringify({ type: "error", error: { type: "not_found_error", message: "not here" } }));
});
server.listen(0, "127.0.0.1", () => writeFileSync(process.argv[2], String(server.address().port)));
