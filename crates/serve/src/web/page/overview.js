// What the page shows besides screens, as plain values: the list, the tiling and the address.

import { bytes } from "./dom.js";

// Below this width there is room for one thing at a time: the list, or a tile.
export const NARROW = 700;

// How many columns and rows of tiles a window of this size gets.
export const grid = (count, width, height) => {
  const root = Math.sqrt(count);
  const wide = width / Math.max(1, height) > 1;
  const cols = count <= 1 || width < NARROW ? 1 : wide ? Math.ceil(root) : Math.floor(root);
  return { cols, rows: Math.max(1, Math.ceil(count / cols)) };
};

// An entry of the list for a live session.
export const sessionEntry = (s) => {
  const command = (s.command ?? []).join(" ");
  const knownState = s.state === "running" && s.agent_state && s.agent_state !== "unknown";
  const size = s.cols ? `${s.cols}×${s.rows_n}` : "";
  const holder = s.driver ? `${s.driver} drives` : "";
  const recording = s.recording_error ? `the recording failed: ${s.recording_error}` : "";
  return {
    key: "s/" + s.id,
    title: s.name || command || s.id,
    detail: [s.name ? command : s.title, size, holder, recording].filter(Boolean).join(" · "),
    state: knownState ? s.agent_state : s.state ?? "",
  };
};

// The entries of the list of live sessions. Those of a squad, whose names are SQUAD/AGENT, stand
// together below an entry of their own, which opens them all.
export const sessionEntries = (sessions) => {
  const squads = new Map(), entries = [];
  for (const session of sessions) {
    const entry = sessionEntry(session);
    const slash = session.name?.indexOf("/") ?? -1;
    const squad = slash > 0 ? session.name.slice(0, slash) : null;
    if (squad === null) { entries.push([entry]); continue; }
    let group = squads.get(squad);
    if (!group) {
      group = [{ key: "g/" + squad, title: squad, detail: "", state: "", opens: [] }];
      squads.set(squad, group);
      entries.push(group);
    }
    group[0].opens.push(entry.key);
    group.push({ ...entry, title: session.name.slice(slash + 1), inside: true });
  }
  for (const [head] of squads.values()) head.detail = head.opens.length === 1 ? "1 agent" : `${head.opens.length} agents`;
  return entries.flat();
};

// An entry of the list for a recording.
export const recordingEntry = (r) => ({
  key: "r/" + r.name,
  title: r.name,
  detail: [bytes(r.size), new Date(r.modified_ms).toLocaleString()].join(" · "),
  state: "",
});

// The fragment of the address that opens the same tiles after a reload. Nothing in it is secret.
export const fragmentOf = (keys) =>
  keys.map((key) => key.split("/").map(encodeURIComponent).join("/")).join("&");

const decode = (text) => { try { return decodeURIComponent(text); } catch { return ""; } };

// What a fragment asks for: with a token it is a link from elsewhere, without one the tiles that
// were open here.
export const asked = (fragment) => {
  const link = new URLSearchParams(fragment);
  const token = link.get("token");
  const keys = token ? link.getAll("open") : fragment.split("&").map(decode);
  return { token, keys: keys.filter((key) => /^[sr]\/./.test(key)) };
};
