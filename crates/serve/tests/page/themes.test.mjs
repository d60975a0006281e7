import assert from "node:assert/strict";
import { test } from "node:test";
import { open } from "./browser.mjs";
import { themes } from "../../src/web/page/themes.js";

const theme = (name, fg, light) => ({ name, fg, bg: "000000", cursor: "111111", ansi: Array(16).fill("222222"), light });
const OFFERED = [theme("dark", "eeeeee", false), theme("light", "333333", true)];

test("the usual theme colours the page until another is chosen, which is kept", () => {
  open();
  const root = document.documentElement.style;
  let changes = 0;
  const end = themes.watch(() => { changes++; });
  themes.offer(OFFERED, "dark");
  assert.deepEqual([themes.name(), root["--fg"], root["--c15"], root["color-scheme"]], ["dark", "#eeeeee", "#222222", "dark"]);
  themes.choose("light");
  assert.deepEqual([themes.name(), root["--fg"], root["color-scheme"]], ["light", "#333333", "light"]);
  assert.deepEqual(Object.keys(themes.colours()), ["fg", "bg", "cursor", "ansi"]);
  // A theme that the server does not know any more is forgotten.
  themes.offer([OFFERED[0]], "dark");
  assert.equal(themes.name(), "dark");
  themes.offer(OFFERED, "dark");
  assert.equal(themes.name(), "light");
  assert.equal(changes, 4);
  end();
  themes.choose("dark");
  assert.equal(changes, 4);
});
