import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Socket, open } from "./browser.mjs";
import { Session } from "../../src/web/page/panel.js";

let tile = null;

// A session's tile whose connection is open.
const start = (claims = false) => {
  open();
  globalThis.WebSocket = Socket;
  Socket.all = [];
  tile = new Session("7", { closed() {} }, claims);
  Socket.last().open();
  return {
    tile,
    hear: (verb, value) => Socket.last().say(`${verb} ${JSON.stringify(value)}`),
    sent: () => Socket.last().sent.splice(0),
  };
};

afterEach(() => tile.close());

const welcome = (more = {}) => ({ name: "page-1", role: "human", driver: null, command: ["/bin/bash", "-l"], ...more });
const verbs = (messages) => messages.map((message) => message.split(" ")[0]);

test("watching takes no stick, and shows that it is free", () => {
  const { tile, hear, sent } = start();
  hear("WELCOME", welcome());
  assert.deepEqual(verbs(sent()), ["SUB"]);
  assert.equal(tile.title.textContent, "bash -l");
  assert.equal(tile.who.textContent, "not driven");
  assert.equal(tile.stick.textContent, "Take");
  assert.equal(tile.stick.hidden, false);
});

test("a session that was started here takes the stick", () => {
  const { tile, hear, sent } = start(true);
  hear("WELCOME", welcome());
  assert.deepEqual(verbs(sent()), ["SUB", "TAKE"]);
  hear("OK", { driver: "page-1" });
  assert.equal(tile.drives(), true);
  assert.equal(tile.who.textContent, "you drive");
  assert.equal(tile.stick.textContent, "Release");
});

test("the stick follows the session's events", () => {
  const { tile, hear } = start();
  hear("WELCOME", welcome({ driver: "ann" }));
  assert.equal(tile.who.textContent, "ann drives");
  hear("EVENT", { name: "DRIVER", who: "page-1" });
  assert.equal(tile.drives(), true);
  hear("EVENT", { name: "DRIVER", who: "ann" });
  assert.equal(tile.claims, false, "a stick that another client took is not claimed again");
  hear("DENIED", { driver: "ann" });
  assert.equal(tile.note.textContent, "ann drives: take the stick to type");
});

test("after a lost connection the stick is claimed once the old client is gone", () => {
  const { hear, sent } = start(true);
  hear("WELCOME", welcome());
  hear("OK", { driver: "page-1" });
  sent();
  hear("WELCOME", welcome({ name: "page-2", driver: "page-1" }));
  assert.deepEqual(verbs(sent()), ["SUB"], "the server has not missed the old connection yet");
  hear("EVENT", { name: "DRIVER", who: null });
  assert.deepEqual(verbs(sent()), ["TAKE"]);
});

test("an observer gets no stick and is told so when it types", () => {
  const { tile, hear, sent } = start(true);
  hear("WELCOME", welcome({ role: "observer" }));
  assert.equal(tile.stick.hidden, true);
  assert.equal(tile.who.textContent, "not driven · watching only");
  sent();
  tile.key({ key: "a" });
  assert.deepEqual(sent(), []);
  assert.equal(tile.note.textContent, "this link lets you watch, not type");
});

test("the exit is shown, and stays when the connection closes", () => {
  for (const [exit, text] of [[{ code: 3 }, "ended with 3"], [{ code: 137, signal: "KILL" }, "ended by KILL"]]) {
    const { tile, hear } = start();
    hear("WELCOME", welcome({ session: "build" }));
    assert.equal(tile.title.textContent, "build");
    hear("EVENT", { name: "CLOSED", exit });
    Socket.last().end(1000, "the session is over");
    assert.equal(tile.note.textContent, text);
    assert.equal(tile.stick.hidden, true);
  }
});

test("a paste without a connection is not lost silently", () => {
  const { tile, hear } = start();
  hear("WELCOME", welcome());
  Socket.last().readyState = 3;
  tile.paste("text");
  assert.equal(tile.note.textContent, "nothing was pasted: there is no connection");
});

test("a search goes around, and answers to an older one are left out", () => {
  const { tile, hear, sent } = start();
  hear("WELCOME", welcome());
  sent();
  tile.query.value = "err";
  tile.find();
  assert.deepEqual(sent(), ['FIND {"text":"err"}']);
  hear("FIND", { text: "er", hits: [[9, 0, 2]] });
  assert.equal(tile.found.textContent, "");
  hear("FIND", { text: "err", hits: [[1, 0, 3], [4, 2, 5]], more: true });
  assert.equal(tile.found.textContent, "2 of 2+", "the newest hit is the first to be shown");
  tile.step(1);
  assert.equal(tile.found.textContent, "1 of 2+");
  tile.step(-1);
  assert.equal(tile.found.textContent, "2 of 2+");
  hear("FIND", { text: "err", hits: [] });
  assert.equal(tile.found.textContent, "nothing found");
});
