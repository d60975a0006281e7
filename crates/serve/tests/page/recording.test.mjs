import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { Socket, open } from "./browser.mjs";
import { KEYS } from "../../src/web/page/keymap.js";
import { Recording } from "../../src/web/page/recording.js";

let tile = null;

// A recording's tile whose connection is open.
const start = (name = "runs/a b.ahr") => {
  open();
  globalThis.WebSocket = Socket;
  Socket.all = [];
  tile = new Recording(name, { closed() {} });
  Socket.last().open();
  const hear = (verb, value) => Socket.last().say(`${verb} ${JSON.stringify(value)}`);
  const sent = () => Socket.last().sent.splice(0);
  hear("WELCOME", { title: "demo" });
  sent();
  return { tile, hear, sent };
};

afterEach(() => tile.close());

const state = (more = {}) => ({ at_ms: 20_000, duration_ms: 100_000, playing: false, speed: 1, idle_ms: null, ...more });

test("a name becomes a path, and the title stands behind it", () => {
  const { tile } = start();
  assert.equal(Socket.last().url, "ws://deck.example/ws/play/runs/a%20b.ahr");
  assert.equal(tile.title.textContent, "runs/a b.ahr · demo");
});

test("every key of the table does something, within the recording", () => {
  const { tile, hear, sent } = start();
  hear("STATE", state());
  const done = (action) => { tile.act(action); return sent().join(" "); };
  const cases = [
    ["pause", "PLAY"],
    ["step-on", 'STEP {"by":1}'],
    ["step-back", 'STEP {"by":-1}'],
    ["skip-on", 'SEEK {"ms":25000}'],
    ["skip-back", 'SEEK {"ms":15000}'],
    ["long-skip-on", 'SEEK {"ms":80000}'],
    ["long-skip-back", 'SEEK {"ms":0}'],
    ["marker-on", 'HOP {"by":1}'],
    ["marker-back", 'HOP {"by":-1}'],
    ["tenth-7", 'SEEK {"ms":70000}'],
    ["start", 'SEEK {"ms":0}'],
    ["end", 'SEEK {"ms":100000}'],
  ];
  for (const [action, message] of cases) assert.equal(done(action), message, action);
  const elsewhere = ["faster", "slower", "search", "next", "help", "quit"];
  const known = [...cases.map(([action]) => action), ...elsewhere];
  for (const [, action] of KEYS) {
    assert.ok(known.includes(action) || /^tenth-\d$/.test(action), `${action} is not tested`);
  }
});

test("keys of the browser and of fields are left alone", () => {
  const { tile, hear, sent } = start();
  hear("STATE", state());
  const press = (key, more = {}) => {
    let taken = false;
    tile.keydown({ key, target: tile.painter.el, preventDefault: () => { taken = true; }, ...more });
    return taken;
  };
  assert.equal(press("."), true);
  assert.deepEqual(sent(), ['STEP {"by":1}']);
  assert.equal(press(".", { ctrlKey: true }), false);
  assert.equal(press(".", { metaKey: true }), false);
  assert.equal(press("x"), false);
  assert.equal(press(" ", { target: tile.toggle }), false, "a button has the space for itself");
  assert.deepEqual(sent(), []);
  assert.equal(press("?"), true);
  assert.equal(tile.help.hidden, false);
  press("Escape");
  assert.equal(tile.help.hidden, true);
});

test("speed counts from what was asked for last", () => {
  const { tile, hear, sent } = start();
  hear("STATE", state({ speed: 1 }));
  tile.faster(1);
  tile.faster(1);
  assert.deepEqual(sent(), ['SPEED {"speed":2}', 'SPEED {"speed":4}']);
  for (let i = 0; i < 9; i++) tile.faster(1);
  assert.equal(sent().at(-1), 'SPEED {"speed":64}');
});

test("the state is shown in words", () => {
  const { tile, hear } = start();
  hear("STATE", state({ playing: true, at_ms: 61_000, damages: 1 }));
  assert.equal(tile.time.textContent, "1:01 / 1:40");
  assert.equal(tile.toggle.textContent, "Pause");
  assert.equal(tile.note.textContent, "parts of this recording are damaged and are left out");
});

test("moments are ticks on the line and entries of a list", () => {
  const { tile, hear, sent } = start();
  hear("STATE", state());
  hear("MOMENTS", [{ ms: 25_000, label: "built", snapshot: null }, { ms: 50_000, label: "", snapshot: 4 }]);
  assert.deepEqual(tile.ticks.children.map((tick) => [tick.style.left, tick.title]), [["25%", "0:25 built"], ["50%", "0:50 snapshot 4"]]);
  assert.equal(tile.jump.hidden, false);
  tile.goto(1);
  tile.goto(-1);
  assert.deepEqual(sent(), ['SEEK {"moment":1}']);
});

test("after a lost connection it goes on where it was", () => {
  const { hear, sent } = start();
  hear("STATE", state());
  hear("STATE", state({ playing: true, speed: 2, idle_ms: 250 }));
  hear("WELCOME", {});
  assert.deepEqual(sent(), ['SEEK {"ms":20000}', 'SPEED {"speed":2}', 'IDLE {"ms":250}', "PLAY"]);
});

test("an error is the last word", () => {
  const { tile, hear } = start();
  hear("ERROR", { error: "not a recording" });
  assert.equal(tile.note.textContent, "not a recording");
  assert.equal(tile.link.closed, true);
});
