import assert from "node:assert/strict";
import { test } from "node:test";
import { again, logIn } from "../../src/web/page/entry.js";

// The steps share what the script remembers, so they are one test.
test("a good token is remembered, shown again once for all, and forgotten when it is refused", async () => {
  let calls = 0;
  const server = (status) => { globalThis.fetch = async () => { calls++; return { ok: status < 300, status }; }; };

  server(403);
  await logIn("wrong");
  assert.equal(await again(), false);
  assert.equal(calls, 1, "a token that was refused is not shown again");

  server(200);
  await logIn("good");
  calls = 0;
  assert.deepEqual(await Promise.all([again(), again(), again()]), [true, true, true]);
  assert.equal(calls, 1, "all who ask at the same time get one answer");

  server(503);
  await assert.rejects(again(), /not now/);
  server(200);
  assert.equal(await again(), true, "a server that is busy is no reason to forget the token");

  server(403);
  assert.equal(await again(), false);
  server(200);
  assert.equal(await again(), false, "it was forgotten");
});
