import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./browser.mjs";
import { Painter } from "../../src/web/page/painter.js";

const CURSOR = { row: 0, col: 0, visible: true, shape: "block" };
const row = (number, text, style = 0, flags = 0) => [number, flags, [[0, text.length, text, style]]];

const frame = (changed, more = {}) => ({
  cols: 10, rows_n: 2, top: 0, first: 0, fg: "ffffff", bg: "000000", cursor: CURSOR, styles: [], changed, ...more,
});

const painter = () => {
  open();
  const asked = [];
  const p = new Painter((from, to) => { asked.push([from, to]); return true; });
  Object.assign(p.el, { clientWidth: 80, clientHeight: 32 });
  return { p, asked, shown: () => p.list.children.map((el) => el.textContent) };
};

test("rows are shown as text, never as markup", () => {
  const { p, shown } = painter();
  p.apply(frame([row(0, "<b>hi</b>"), row(1, "two")], { full: true }));
  assert.deepEqual(shown(), ["<b>hi</b>", "two"]);
  p.apply(frame([row(1, "new")]));
  assert.deepEqual(shown(), ["<b>hi</b>", "new"]);
});

test("a row that looks the same keeps its element", () => {
  const { p } = painter();
  p.apply(frame([row(0, "same"), row(1, "two")]));
  const [child] = p.list.children[0].childNodes;
  p.list.children[0].childNodes = [child, "marked"];
  p.apply(frame([row(0, "same")]));
  assert.deepEqual(p.list.children[0].childNodes, [child, "marked"], "the browser's selection is in there");
  p.apply(frame([row(0, "other")]));
  assert.deepEqual(p.list.children[0].childNodes, ["other"]);
});

test("columns between runs are blanks, and a pinned run has its width", () => {
  const { p, shown } = painter();
  p.apply(frame([[0, 0, [[1, 1, "a", 0], [4, -2, "字", 0]]]]));
  assert.equal(shown()[0], " a  字");
  const pinned = p.list.children[0].children[0];
  assert.equal(pinned.className, "pin");
  assert.equal(pinned.style.width, "calc(var(--cw) * 2)");
});

test("styles become css", () => {
  const { p } = painter();
  p.apply(frame([]));
  const css = (style) => p.look(style).css;
  assert.equal(css({ f: "ff0000", b: "00ff00", a: "bi" }), "color:#ff0000;background-color:#00ff00;font-weight:bold;font-style:italic");
  assert.equal(css({ u: "curly", uc: "0000ff", a: "s" }), "text-decoration:underline line-through wavy #0000ff");
  assert.equal(css({ a: "c", f: "ff0000" }), "color:transparent");
  assert.equal(css({ a: "d", f: "ffffff" }), "color:#8c8c8c");
  assert.equal(p.look({ a: "k", b: "000000" }).classes, "block blink");
});

test("a link opens apart and tells nothing of this page", () => {
  const { p } = painter();
  p.apply(frame([row(0, "here", 1)], { styles: [{ l: "https://example.org/" }] }));
  const [link] = p.list.children[0].children;
  assert.deepEqual([link.tag, link.href, link.target, link.rel], ["a", "https://example.org/", "_blank", "noopener noreferrer"]);
});

test("rows above the screen are asked for once, and only where they are missing", () => {
  const { p, asked } = painter();
  p.apply(frame([row(3, "d"), row(4, "e")], { top: 3 }));
  assert.deepEqual(asked, [[0, 3]]);
  p.apply(frame([row(3, "D")], { top: 3 }));
  assert.equal(asked.length, 1, "the answer is still on its way");
  p.more({ cols: 10, styles: [], changed: [row(0, "a"), row(1, "b"), row(2, "c"), row(3, "old")] });
  assert.deepEqual(p.list.children.map((el) => el.textContent), ["a", "b", "c", "D", "e"]);
  assert.equal(asked.length, 1);
});

test("an answer for another width is not used", () => {
  const { p, asked, shown } = painter();
  p.apply(frame([row(1, "b"), row(2, "c")], { top: 1 }));
  p.more({ cols: 20, styles: [], changed: [row(0, "wide")] });
  assert.equal(shown()[0], "");
  assert.deepEqual(asked, [[0, 1], [0, 1]]);
});

test("a row that scrolled off unseen is not trusted", () => {
  const { p, asked } = painter();
  p.apply(frame([row(0, "a"), row(1, "b")]));
  p.apply(frame([row(2, "c")], { top: 1 }));
  assert.equal(p.rows.has(0), false, "it may have changed before it left");
  assert.deepEqual(asked, [[0, 1]]);
  p.forget();
  p.apply(frame([row(1, "b"), row(3, "d")], { top: 2 }));
  assert.equal(p.rows.has(1), true, "it was told again");
});

test("another width begins anew", () => {
  const { p } = painter();
  p.apply(frame([row(0, "a"), row(1, "b")]));
  assert.equal(p.apply(frame([row(0, "x")], { cols: 20 })), true);
  assert.deepEqual([...p.rows.keys()], [0]);
});

test("a hit that goes on in the next row is marked in both", () => {
  const { p } = painter();
  p.apply(frame([row(0, "a"), row(1, "b")]));
  p.setHits([[0, 8, 5]], 0);
  const marks = p.marks.children.map((el) => [el.style.left, el.style.top, el.style.width, el.className]);
  assert.deepEqual(marks, [["64px", "0px", "16px", "mark current"], ["0px", "16px", "24px", "mark current"]]);
});

test("a place outside is the nearest cell", () => {
  const { p } = painter();
  p.apply(frame([]));
  assert.deepEqual(p.cell(17, 20), { col: 2, row: 1, x: 17, y: 20 });
  assert.deepEqual(p.cell(-4, 999), { col: 0, row: 1, x: 0, y: 999 });
});
