import assert from "node:assert/strict";
import { test } from "node:test";
import { Element, open } from "./browser.mjs";
import { Hands, keyName } from "../../src/web/page/hands.js";

const press = (key, more = {}) => keyName({ key, ...more });

test("a key has the name that the session knows", () => {
  const graph = { getModifierState: (name) => name === "AltGraph", ctrlKey: true, altKey: true };
  const cases = [
    [press("a"), "a"],
    [press("A", { shiftKey: true }), "A"],
    [press("C", { ctrlKey: true, shiftKey: true }), "C-S-c"],
    [press("x", { altKey: true }), "M-x"],
    [press(" "), "Space"],
    [press("Tab", { shiftKey: true }), "S-Tab"],
    [press("F12", { ctrlKey: true }), "C-F12"],
    [press("F36"), null],
    [press("Enter", { code: "NumpadEnter" }), "KPEnter"],
    [press("5", { code: "Numpad5" }), "KP5"],
    [press("ContextMenu"), "Menu"],
    [press("Shift"), null],
    [press("@", graph), "@"],
    [press("😀"), "😀"],
  ];
  for (const [name, wanted] of cases) assert.equal(name, wanted);
});

const hands = (frame = {}, drives = true) => {
  open();
  const said = [], sticky = [];
  const painter = {
    frame, follow: true, lh: 16, el: new Element("div"), space: new Element("div"), caret: new Element("div"),
    cell: (x, y) => ({ col: Math.floor(x / 8), row: Math.floor(y / 16), x, y }), selected: () => "",
  };
  const to = { key: (value) => said.push(value), drives: () => drives, sticky: (mods) => sticky.push(mods), focus() {}, paste() {} };
  return { hands: new Hands(new Element("section"), painter, to), said, sticky };
};

test("a modifier on glass holds for one key", () => {
  const { hands: h, said, sticky } = hands();
  h.setSticky("C-");
  h.type("C");
  h.type("c");
  h.setSticky("M-");
  h.press("Left");
  assert.deepEqual(said, [{ keys: ["C-c"] }, { text: "c" }, { keys: ["M-Left"] }]);
  assert.deepEqual(sticky, ["C-", "", "M-", ""]);
});

const wheel = (h, deltaY, more = {}) => {
  let taken = false;
  h.wheel({ deltaY, deltaMode: 0, clientX: 16, clientY: 32, preventDefault: () => { taken = true; }, ...more });
  return taken;
};

test("half a notch of the wheel counts as one, and turning back begins anew", () => {
  const { hands: h, said } = hands({ mouse: true });
  const buttons = () => said.splice(0).map((value) => value.mouse.button);
  wheel(h, 40);
  assert.deepEqual(buttons(), []);
  wheel(h, 20);
  assert.deepEqual(buttons(), ["wheeldown"]);
  wheel(h, -40);
  wheel(h, 250);
  assert.deepEqual(buttons(), ["wheeldown", "wheeldown", "wheeldown"]);
  wheel(h, -3, { deltaMode: 1 });
  assert.deepEqual(buttons(), ["wheelup"]);
});

test("the wheel scrolls the page unless the program wants it and this page drives", () => {
  assert.equal(wheel(hands({}).hands, 100), false);
  assert.equal(wheel(hands({ mouse: true }, false).hands, 100), false);
  assert.equal(wheel(hands({ mouse: true }).hands, 100, { shiftKey: true }), false);
  assert.equal(wheel(hands({ wheel: true }).hands, 100), true);
});

test("a move is told once a cell", () => {
  const { hands: h, said } = hands({ mouse: true, moves: true });
  for (const clientX of [1, 5, 9]) h.mousemove({ clientX, clientY: 1, ctrlKey: true });
  assert.deepEqual(said.map(({ mouse }) => [mouse.kind, mouse.col, mouse.mods]), [["move", 0, "C"], ["move", 1, "C"]]);
});
