import assert from "node:assert/strict";
import { test } from "node:test";
import { asked, fragmentOf, grid, recordingEntry, sessionEntries, sessionEntry } from "../../src/web/page/overview.js";

test("tiles fill the window, in one column where it is narrow", () => {
  const cases = [
    [0, 1200, 800, 1, 1], [1, 1200, 800, 1, 1], [2, 1200, 800, 2, 1], [3, 1200, 800, 2, 2],
    [5, 1200, 800, 3, 2], [5, 800, 1200, 2, 3], [3, 800, 1200, 1, 3], [4, 600, 900, 1, 4], [2, 900, 0, 2, 1],
  ];
  for (const [count, width, height, cols, rows] of cases) {
    assert.deepEqual(grid(count, width, height), { cols, rows }, `${count} tiles in ${width}×${height}`);
  }
});

test("a session is listed by its name, else by its command", () => {
  const named = { id: "1", name: "build", command: ["make", "-j"], state: "running", cols: 80, rows_n: 24, driver: "ann" };
  assert.deepEqual(sessionEntry(named),
    { key: "s/1", title: "build", detail: "make -j · 80×24 · ann drives", state: "running" });
  const plain = { id: "2", command: ["vim"], title: "notes.md", state: "exited" };
  assert.deepEqual(sessionEntry(plain), { key: "s/2", title: "vim", detail: "notes.md", state: "exited" });
  assert.deepEqual(sessionEntry({ id: "3" }), { key: "s/3", title: "3", detail: "", state: "" });
});

test("the sessions of a squad stand together below an entry that opens them all", () => {
  const session = (id, name) => ({ id, name, command: ["x"], state: "running" });
  const listed = sessionEntries([session("1", "pair/writer"), session("2", "build"), session("3", "pair/reviewer"), session("4", "/odd")]);
  assert.deepEqual(listed.map(({ key, title, inside }) => [key, title, inside ?? false]), [
    ["g/pair", "pair", false], ["s/1", "writer", true], ["s/3", "reviewer", true], ["s/2", "build", false], ["s/4", "/odd", false],
  ]);
  assert.deepEqual([listed[0].opens, listed[0].detail], [["s/1", "s/3"], "2 agents"]);
});

test("what an agent does says more than that it runs", () => {
  const state = (state, agent_state) => sessionEntry({ id: "1", state, agent_state }).state;
  assert.equal(state("running", "blocked"), "blocked");
  assert.equal(state("running", "unknown"), "running");
  assert.equal(state("exited", "blocked"), "exited");
});

test("a recording is listed with its size", () => {
  const { key, title, detail } = recordingEntry({ name: "runs/a.ahr", size: 1500, modified_ms: 0 });
  assert.deepEqual([key, title, detail.split(" · ")[0]], ["r/runs/a.ahr", "runs/a.ahr", "1.5 KB"]);
});

test("a reload opens the same tiles", () => {
  const keys = ["s/build 1", "r/runs/a&b#c.ahr", "r/100%.ahr"];
  const fragment = fragmentOf(keys);
  assert.doesNotMatch(fragment, /[ #]/);
  assert.deepEqual(asked(fragment), { token: null, keys });
});

test("a link brings a token and tiles; everything else in it is left out", () => {
  assert.deepEqual(asked("token=t%2B1&open=s%2F1&open=r%2Fa.ahr&open=x%2F2"), { token: "t+1", keys: ["s/1", "r/a.ahr"] });
  assert.deepEqual(asked("open=s%2F1"), { token: null, keys: [] });
  assert.deepEqual(asked("s/1&%E0%A4%A&s/&q/2"), { token: null, keys: ["s/1"] });
  assert.deepEqual(asked(""), { token: null, keys: [] });
});
