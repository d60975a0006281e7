// The page: lets itself in, lists what there is, and tiles what is opened.

import { make } from "./dom.js";
import { logIn } from "./entry.js";
import { Link } from "./link.js";
import { NARROW, asked, fragmentOf, grid, recordingEntry, sessionEntries } from "./overview.js";
import { Session } from "./panel.js";
import { Recording } from "./recording.js";
import { themes } from "./themes.js";

const tiles = document.getElementById("tiles");
const lists = { sessions: document.getElementById("sessions"), recordings: document.getElementById("recordings") };
const open = new Map();

const arrange = () => {
  const n = open.size;
  const { cols, rows } = grid(n, innerWidth, innerHeight);
  tiles.style.gridTemplateColumns = `repeat(${cols}, minmax(0, 1fr))`;
  tiles.style.gridTemplateRows = `repeat(${rows}, minmax(0, 1fr))`;
  document.body.classList.toggle("empty", n === 0);
  // On a small screen the list is all there is to see when nothing is open.
  if (innerWidth < NARROW && n === 0) document.body.classList.remove("folded");
  history.replaceState(null, "", "#" + fragmentOf([...open.keys()]));
  for (const list of Object.values(lists)) {
    for (const item of list.children) item.classList.toggle("open", open.has(item.dataset.key));
  }
};

// With `claims` the page takes the stick of the session if it is free, as for one that it started.
const show = (key, claims = false) => {
  const known = open.get(key);
  if (known) { known.focus(); return; }
  const id = key.slice(2);
  const on = { closed: () => { open.delete(key); arrange(); } };
  const tile = key.startsWith("s/") ? new Session(id, on, claims) : new Recording(id, on);
  open.set(key, tile);
  tiles.append(tile.el);
  arrange();
  tile.fit();
  tile.focus();
};

const item = ({ key, title, detail, state, opens = [key], inside }) => {
  const act = () => opens.forEach((key) => pick(key));
  const el = make("li", { tabIndex: 0, role: "button", onclick: act, onkeydown: (e) => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); act(); } } },
    make("span", { className: "name", textContent: title }), make("span", { className: "state " + state, textContent: state }),
    make("span", { className: "detail", textContent: detail }));
  el.dataset.key = key;
  el.classList.toggle("open", open.has(key));
  el.classList.toggle("inside", Boolean(inside));
  return el;
};

const pick = (key, claims) => {
  if (innerWidth < NARROW) document.body.classList.add("folded");
  show(key, claims);
};

// Replaces a list. The entry that had the keyboard's focus gets it again.
const renew = (list, items) => {
  const at = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  list.replaceChildren(...items.length ? items : [make("li", { className: "none", textContent: list === lists.sessions && fresh.hidden ? "none; start one with tapdeck run -d" : "none" })]);
  if (at) items.find((item) => item.dataset.key === at)?.focus();
};

const list = (value) => {
  renew(lists.sessions, sessionEntries(value.sessions).map(item));
  renew(lists.recordings, (value.recordings ?? []).map(recordingEntry).map(item));
};

// A new session, for those who may start programs.
const opener = document.getElementById("opener");
const fresh = document.getElementById("new");
const theme = document.getElementById("theme");
const welcome = async (answer) => {
  const allowed = await answer.json();
  fresh.hidden = allowed.scope !== "open";
  themes.offer(allowed.themes, allowed.theme);
  theme.replaceChildren(...themes.names().map((name) => make("option", { value: name, textContent: name })));
  theme.value = themes.name();
};

theme.addEventListener("change", () => themes.choose(theme.value));

fresh.addEventListener("click", () => {
  opener.hidden = !opener.hidden;
  if (!opener.hidden) opener.command.focus();
});

opener.addEventListener("keydown", (e) => { if (e.key === "Escape") { opener.hidden = true; fresh.focus(); } });

opener.addEventListener("submit", async (e) => {
  e.preventDefault();
  const [say, start] = [opener.querySelector("output"), opener.querySelector("button")];
  say.textContent = "";
  start.disabled = true;
  try {
    const answer = await fetch("/api/v1/sessions", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ command: opener.command.value.trim() }) });
    if (!answer.ok) { say.textContent = (await answer.json()).message; return; }
    opener.reset();
    opener.hidden = true;
    pick("s/" + (await answer.json()).id, true);
  } catch { say.textContent = "the server is away"; } finally { start.disabled = false; }
});

// Hides everything behind a word; a good link brings it back.
const refuse = (text) => {
  document.body.classList.add("refused");
  tiles.querySelector(".refusal")?.remove();
  tiles.append(make("p", { className: "refusal", textContent: text }));
};

let watch = null;

const enter = async () => {
  let { token, keys } = asked(location.hash.slice(1));
  if (token) {
    // Out of the address at once, so that no history keeps the token and no picture shows it.
    history.replaceState(null, "", "#");
    const answer = await logIn(token);
    if (!answer.ok) {
      const text = "The token in this link is wrong, or no longer good. Ask the owner of this server for another.";
      if (watch && open.size) for (const tile of open.values()) tile.say(text, 8000);
      else refuse(text);
      arrange();
      return;
    }
    await welcome(answer);
    // It may allow other things: what is open is opened anew.
    keys = [...open.keys(), ...keys];
    for (const tile of [...open.values()]) tile.close();
    watch?.close();
    watch = null;
  } else if (!watch) {
    const answer = await fetch("/login", { cache: "no-store" });
    if (!answer.ok) { refuse("This page needs a token: open the link that tapdeck web printed, or put #token= and a token of tapdeck serve behind this address."); return; }
    await welcome(answer);
  }
  tiles.querySelector(".refusal")?.remove();
  document.body.classList.remove("refused");
  watch ??= new Link("/ws/list", {
    open: () => {},
    message: (verb, value) => { if (verb === "LIST") list(value); },
    state: (text, final) => { if (final) { watch = null; refuse(text); } },
  });
  if (innerWidth < NARROW && keys.length) document.body.classList.add("folded");
  for (const key of keys) show(key);
  arrange();
};

// One after another: a link may be pasted while another is still looked at.
let entered = Promise.resolve();
const come = () => { entered = entered.then(enter).catch((e) => refuse("Something is wrong with this page: " + e.message)); };

document.getElementById("fold").addEventListener("click", () => document.body.classList.toggle("folded"));
addEventListener("resize", arrange);
addEventListener("hashchange", come);
come();
