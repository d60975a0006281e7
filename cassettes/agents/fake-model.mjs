// A model that knows a few answers by heart, on a free port of the loopback: enough of the Messages API and of the
// Responses API for a real agent to hold a conversation without an account. Writes its port to the file named first.
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";

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

const answer = (asked) => {
  if (asked.includes("tool_result")) return "The note is written.";
  return asked.includes("capital of France") ? "The capital of France is Paris." : "I only know a few things by heart.";
};

const stream = (res) => {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  return (event, data) => res.write(`event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`);
};

const messages = (ask, res) => {
  const asked = said(ask.messages);
  const wantsTool = asked.includes("write the note") && !asked.includes("tool_result") && said(ask.tools).includes('"Write"');
  const text = answer(asked);
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
    for (const word of text.split(/(?<= )/)) send("content_block_delta", { index: 0, delta: { type: "text_delta", text: word } });
  }
  send("content_block_stop", { index: 0 });
  send("message_delta", { delta: { stop_reason: stop, stop_sequence: null }, usage });
  send("message_stop", {});
  res.end();
};

const responses = (ask, res) => {
  const text = answer(said(ask.input));
  const send = stream(res);
  const response = { id: "resp_1", object: "response", status: "in_progress", model: ask.model, output: [] };
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
  send("response.created", { response });
  send("response.output_item.added", { output_index: 0, item: { ...item, status: "in_progress", content: [] } });
  for (const word of text.split(/(?<= )/)) send("response.output_text.delta", { item_id: "msg_1", output_index: 0, content_index: 0, delta: word });
  send("response.output_item.done", { output_index: 0, item });
  const usage = { input_tokens: 12, input_tokens_details: null, output_tokens: 7, output_tokens_details: null, total_tokens: 19 };
  send("response.completed", { response: { ...response, status: "completed", output: [item], usage } });
  res.end();
};

const server = createServer(async (req, res) => {
  const path = req.url.split("?")[0];
  const ask = await body(req);
  if (req.method === "POST" && path.endsWith("/messages")) return messages(ask, res);
  if (req.method === "POST" && path.endsWith("/responses")) return responses(ask, res);
  if (req.method === "POST" && path.endsWith("/count_tokens")) {
    res.writeHead(200, { "content-type": "application/json" });
    return res.end(JSON.stringify({ input_tokens: 12 }));
  }
  res.writeHead(404, { "content-type": "application/json" });
  res.end(JSON.stringify({ type: "error", error: { type: "not_found_error", message: "not here" } }));
});
server.listen(0, "127.0.0.1", () => writeFileSync(process.argv[2], String(server.address().port)));
