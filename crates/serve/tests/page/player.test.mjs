import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import vm from "node:vm";
import { Element, open } from "./browser.mjs";

const script = readFileSync(new URL("../../../tape/src/export/player.js", import.meta.url), "utf8");

const run = (col, text, style = 0, width = 0) => [col, style, text, width];
const frame = (t, rows, more = {}) => ({ t, r: rows, c: [0, 0, 0], ...more });

// Runs the player of an exported page on these frames.
const start = (frames, { duration = 10_000, moments = [], cols = 10, rows = 3 } = {}) => {
  const { window } = open();
  const data = (value) => { const el = new Element("script"); el.textContent = JSON.stringify(value); return el; };
  const found = {
    head: data({ cols, rows, fg: "#fff", bg: "#000" }), tail: data({ duration, moments }), player: new Element("div"),
  };
  document.getElementById = (id) => found[id];
  document.querySelectorAll = () => [data([{ ...frames[0], d: [["", "", "", ""]] }]), data(frames.slice(1))];
  vm.runInThisContext(script);
  const [screen, bar, tools] = found.player.children;
  const [play, seek, time] = bar.children;
  const query = tools.children.find((el) => el.tag === "input");
  const hits = () => screen.children.filter((el) => el.className === "hit").length;
  const press = (key, more = {}) => {
    document.dispatchEvent(Object.assign(new Event("keydown", { cancelable: true }), { key, ...more }));
    return time.textContent.split(" / ")[0];
  };
  return {
    window, screen, play, seek, time, press, hits, found: tools.children.find((el) => el.tag === "span"),
    shown: () => screen.children.filter((el) => el.className.startsWith("row")).map((el) => el.textContent),
    search: (text) => { query.value = text; query.oninput(); },
    next: (shiftKey = false) => { query.onkeydown({ key: "Enter", shiftKey }); return time.textContent.split(" / ")[0]; },
  };
};

const FRAMES = [
  frame(0, [[0, [run(0, "one")], 0]]),
  frame(2000, [[1, [run(2, "two")], 0]]),
  frame(4000, [[0, [run(0, "ONE")], 0]], { s: [10, 2] }),
];

test("the screen is what the frames so far add up to", () => {
  const { shown, press } = start(FRAMES);
  assert.deepEqual(shown(), ["one", "", ""]);
  press(".");
  assert.deepEqual(shown(), ["one", "  two", ""]);
  press(".");
  assert.deepEqual(shown(), ["ONE", ""], "another size begins with an empty screen");
  press(",");
  assert.deepEqual(shown(), ["one", "  two", ""]);
});

test("far frames are reached through stored states", () => {
  const many = Array.from({ length: 350 }, (_, i) => frame(i * 10, [[0, [run(0, String(i))], 0]]));
  const { shown, press } = start(many, { duration: 3500 });
  press("G");
  assert.equal(shown()[0], "349");
  press("5");
  assert.equal(shown()[0], "175");
  press("g");
  assert.equal(shown()[0], "0");
});

test("keys move within the recording", () => {
  const { press } = start(FRAMES, { duration: 200_000, moments: [[30_000, "built"], [90_000, ""]] });
  const cases = [
    ["ArrowRight", {}, "0:05"], ["ArrowLeft", {}, "0:00"], ["ArrowLeft", {}, "0:00"],
    ["ArrowRight", { shiftKey: true }, "1:00"], ["]", {}, "1:30"], ["]", {}, "3:20"], ["[", {}, "1:30"], ["[", {}, "0:30"],
    ["[", {}, "0:00"], ["5", {}, "1:40"], ["End", {}, "3:20"], ["Home", {}, "0:00"], ["5", { ctrlKey: true }, "0:00"],
  ];
  for (const [key, more, at] of cases) assert.equal(press(key, more), at, key);
});

test("a search finds text across wrapped rows, and goes from hit to hit", () => {
  const frames = [
    frame(0, [[0, [run(0, "make te")], 1], [1, [run(0, "sts")], 0]]),
    frame(1000, [[2, [run(0, "ok")], 0]]),
    frame(3000, [[2, [run(0, "TESTS")], 0]]),
  ];
  const { search, next, hits, found, time } = start(frames);
  search("tests");
  assert.equal(found.textContent, "2 moments");
  assert.equal(hits(), 5, "each cell of the hit is marked");
  assert.equal(next(), "0:03");
  assert.equal(hits(), 10);
  assert.equal(next(), "0:00", "behind the last hit comes the first");
  assert.equal(next(true), "0:03");
  search("none");
  assert.equal(found.textContent, "0 moments");
  assert.equal(time.textContent, "0:03 / 0:10");
});
