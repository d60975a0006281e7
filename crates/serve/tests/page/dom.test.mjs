import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./browser.mjs";
import { bytes, clock, kept, make } from "../../src/web/page/dom.js";

test("times are read as on a clock", () => {
  const cases = [[0, "0:00"], [-5, "0:00"], [999, "0:00"], [61_000, "1:01"], [3_600_000, "1:00:00"], [36_061_000, "10:01:01"]];
  for (const [ms, text] of cases) assert.equal(clock(ms), text);
});

test("sizes have three digits at most", () => {
  const cases = [[0, "0 B"], [999, "999 B"], [1000, "1.0 KB"], [12_345, "12 KB"], [9_990_000, "10.0 MB"], [5e12, "5000 GB"]];
  for (const [n, text] of cases) assert.equal(bytes(n), text);
});

test("an element gets properties, attributes, listeners and children", () => {
  open();
  let heard = 0;
  const el = make("a", { href: "/x", "aria-label": "go", onclick: () => heard++ }, "a", make("b", {}, "<i>"));
  el.dispatchEvent(new Event("click"));
  assert.equal(heard, 1);
  assert.equal(el.href, "/x");
  assert.deepEqual(el.attributes, { "aria-label": "go" });
  assert.equal(el.textContent, "a<i>");
});

test("settings are kept, and a browser that forbids it does no harm", () => {
  open();
  assert.equal(kept.get("font", 14), 14);
  kept.set("font", 20);
  assert.equal(kept.get("font", 14), "20");
  const refuse = () => { throw new Error("storage is off"); };
  globalThis.localStorage = { getItem: refuse, setItem: refuse };
  kept.set("font", 9);
  assert.equal(kept.get("font", 14), 14);
});
