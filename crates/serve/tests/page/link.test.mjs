import assert from "node:assert/strict";
import { test } from "node:test";
import { Socket, open } from "./browser.mjs";
import { logIn } from "../../src/web/page/entry.js";
import { GONE, Link } from "../../src/web/page/link.js";

// A link, and what it said.
const start = () => {
  const { window } = open();
  globalThis.WebSocket = Socket;
  Socket.all = [];
  const heard = [];
  const on = {
    open: () => heard.push("open"),
    message: (verb, value) => heard.push([verb, value]),
    state: (text, final = false) => heard.push({ text, final }),
  };
  const link = new Link("/ws/list", on);
  return { link, heard, window };
};

const answer = (status) => { globalThis.fetch = async () => ({ status, ok: status < 300 }); };

test("messages are a verb and JSON; others are left out", () => {
  const { link, heard } = start();
  assert.equal(Socket.last().url, "ws://deck.example/ws/list");
  assert.equal(link.send("ACK"), false, "there is no connection yet");
  Socket.last().open();
  Socket.last().say('LIST {"a": 1}');
  Socket.last().say("PING");
  Socket.last().say("LIST {");
  link.send("ACK");
  link.send("SEEK", { ms: 5 });
  assert.deepEqual(heard, [{ text: "", final: false }, "open", ["LIST", { a: 1 }], ["PING", null]]);
  assert.deepEqual(Socket.last().sent, ["ACK", 'SEEK {"ms":5}']);
  link.close();
});

test("a lost connection is tried again, later each time", async () => {
  const { link, heard } = start();
  answer(200);
  const waits = [];
  let due = null;
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (then, ms) => { waits.push(ms); due = then; };
  try {
    Socket.last().open();
    for (let i = 0; i < 12; i++) {
      Socket.last().end(1006);
      await due();
    }
  } finally { globalThis.setTimeout = setTimeout; }
  assert.equal(Socket.all.length, 13);
  assert.equal(waits[0], 150);
  // A tenth more or less, so that many pages do not come back at the same moment.
  assert.ok(waits.slice(0, 5).every((wait, i) => i === 0 || wait > waits[i - 1] * 1.5), String(waits));
  assert.ok(waits.every((wait) => wait <= 4400) && waits.at(-1) >= 3600, String(waits));
  assert.deepEqual(heard.at(-1), { text: "connection lost, trying again", final: false });
  Socket.last().open();
  assert.equal(link.wait, 150, "the next wait is short again");
  link.close();
});

test("a server that gives a reason is not asked again", () => {
  const { link, heard } = start();
  Socket.last().open();
  Socket.last().end(1000, "the session has ended");
  assert.deepEqual(heard.at(-1), { text: "the session has ended", final: true });
  assert.equal(link.closed, true);
  assert.equal(Socket.all.length, 1);
});

test("what is not there any more, or not allowed any more, is given up", async () => {
  const ends = [[404, GONE], [401, "what let you in is no longer good: open another link"]];
  for (const [status, text] of ends) {
    const { link, heard } = start();
    answer(status);
    Socket.last().end(1006);
    clearTimeout(link.timer);
    await link.retry();
    assert.deepEqual(heard.at(-1), { text, final: true });
    assert.equal(link.closed, true);
  }
});

test("a server that was started anew is shown the token again", async () => {
  const { link } = start();
  const asked = [];
  globalThis.fetch = async (path, options) => {
    asked.push([path, options.body]);
    return path === "/login" ? { ok: true, status: 200 } : { ok: false, status: 401 };
  };
  await logIn("secret");
  Socket.last().end(1006);
  clearTimeout(link.timer);
  await link.retry();
  assert.deepEqual(asked.slice(1), [["/ws/list", undefined], ["/login", '{"token":"secret"}']]);
  assert.equal(Socket.all.length, 2, "it connects again");
  link.close();
});

test("a network that is back is used at once", () => {
  const { link, window } = start();
  Socket.last().end(1006);
  window.dispatchEvent(new Event("online"));
  assert.equal(Socket.all.length, 2);
  link.close();
  window.dispatchEvent(new Event("online"));
  assert.equal(Socket.all.length, 2, "a closed link stays closed");
});
