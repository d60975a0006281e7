// A recording in a tile: played by the server, drawn here, with a timeline.

import { clock, make } from "./dom.js";
import { keyName } from "./hands.js";
import { KEYS } from "./keymap.js";
import { Link } from "./link.js";
import { Tile, button } from "./panel.js";
import { themes } from "./themes.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16, 64];
const PAUSES = [["as recorded", ""], ["at most 5 s", "5000"], ["at most 2 s", "2000"], ["at most 1 s", "1000"], ["at most ¼ s", "250"]];
const SKIP = 5000, LONG_SKIP = 60000;
const ACTIONS = new Map(KEYS.map(([key, action]) => [key, action]));
const SIGNS = { Space: "space", Left: "←", Right: "→" };
// The tenths are one line.
const HELP = KEYS.filter(([, action]) => !/^tenth-[1-9]/.test(action)).map(([key, action, text]) =>
  [action === "tenth-0" ? "0-9" : key.replace("S-", "Shift-").replace(/Space|Left|Right/, (name) => SIGNS[name]), text]);

export class Recording extends Tile {
  constructor(name, on) {
    super("recording", name, on);
    this.painter.jumps = true;
    this.title.textContent = name;
    this.endTools();
    this.now = { at_ms: 0, duration_ms: 0, playing: false, speed: 1 };
    this.moments = [];
    this.wanted = null;
    this.toggle = button("Play", "Play or pause (space)", () => this.playOrPause());
    this.toggle.className = "play";
    this.range = make("input", { type: "range", min: 0, max: 1, value: 0, step: 1, oninput: () => this.drag(), });
    this.range.setAttribute("aria-label", "position");
    this.ticks = make("div", { className: "ticks" });
    this.time = make("span", { className: "time", textContent: "0:00" });
    this.speed = make("select", { title: "Speed", onchange: () => this.setSpeed(Number(this.speed.value)) },
      ...SPEEDS.map((n) => make("option", { value: n, textContent: n + "×" })));
    this.speed.value = 1;
    this.pauses = make("select", { title: "Pauses", onchange: () => this.link.send("IDLE", this.pauses.value ? { ms: Number(this.pauses.value) } : {}) },
      ...PAUSES.map(([text, value]) => make("option", { value, textContent: text })));
    this.jump = make("select", { className: "moments", title: "Markers and snapshots", hidden: true, onchange: () => this.goto(Number(this.jump.value)) });
    this.foot.append(this.toggle, button("‹", "Step back (,)", () => this.link.send("STEP", { by: -1 })), button("›", "Step on (.)", () => this.link.send("STEP", { by: 1 })),
      make("div", { className: "line" }, this.range, this.ticks), this.time, this.jump, this.speed, this.pauses);
    this.el.addEventListener("keydown", (e) => this.keydown(e));
    this.painter.el.tabIndex = 0;
    this.help = make("dl", { className: "help", hidden: true }, ...HELP.flatMap(([key, text]) => [make("dt", { textContent: key }), make("dd", { textContent: text })]));
    this.painter.el.after(this.help);
    this.tools.prepend(button("?", "Keys (?)", () => this.toggleHelp()));
    const path = name.split("/").map(encodeURIComponent).join("/");
    this.link = new Link("/ws/play/" + path, {
      open: () => {},
      message: (verb, value) => this.hear(verb, value),
      state: (text, final) => { this.el.classList.toggle("away", Boolean(text)); if (!this.failed) this.say(text, 0); if (final) this.el.classList.add("over"); },
    });
  }

  hear(verb, value) {
    super.hear(verb, value);
    if (verb === "WELCOME") {
      this.painter.forget();
      this.recolour();
      const title = value.title || value.command?.join(" ");
      this.title.textContent = this.id + (title ? " · " + title : "");
      // After a break it goes on where it was.
      if (this.now.at_ms) this.link.send("SEEK", { ms: this.now.at_ms });
      this.setSpeed(this.wanted ?? this.now.speed);
      if ("idle_ms" in this.now) this.link.send("IDLE", this.now.idle_ms === null ? {} : { ms: this.now.idle_ms });
      if (this.now.playing) this.link.send("PLAY");
    } else if (verb === "STATE") this.setState(value);
    else if (verb === "MOMENTS") {
      this.setMoments(value);
    }
    else if (verb === "ERROR") { this.failed = true; this.say(value.error, 0); this.link.close(); }
    else if (verb === "DENIED") this.say(value.error);
  }

  // Asks for frames in the colours of the theme.
  recolour() {
    const colours = themes.colours();
    if (colours) this.link.send("THEME", colours);
  }

  setState(value) {
    const longer = value.duration_ms !== this.now.duration_ms;
    this.now = value;
    if (value.speed === this.wanted) this.wanted = null;
    this.toggle.textContent = value.playing ? "Pause" : "Play";
    this.range.max = Math.max(1, value.duration_ms);
    if (!this.dragging) this.range.value = value.at_ms;
    this.time.textContent = clock(value.at_ms) + " / " + clock(value.duration_ms);
    this.range.setAttribute("aria-valuetext", this.time.textContent);
    if (document.activeElement !== this.speed) this.speed.value = this.wanted ?? value.speed;
    if (document.activeElement !== this.pauses) this.pauses.value = value.idle_ms ?? "";
    if (longer) this.setMoments(this.moments);
    if (value.damages && !this.warned) { this.warned = true; this.say("parts of this recording are damaged and are left out"); }
  }

  setMoments(moments) {
    this.moments = moments;
    const all = this.now.duration_ms || 1;
    this.ticks.replaceChildren(...moments.slice(0, 500).map((m, i) => {
      const tick = button("", `${clock(m.ms)} ${label(m)}`, () => this.goto(i));
      tick.className = m.snapshot === null ? "tick" : "tick snapshot";
      tick.style.left = Math.min(100, (100 * m.ms) / all) + "%";
      return tick;
    }));
    this.jump.hidden = !moments.length;
    this.jump.replaceChildren(make("option", { value: -1, textContent: "Moments" }), ...moments.map((m, i) => make("option", { value: i, textContent: `${clock(m.ms)}  ${label(m)}` })));
  }

  goto(i) {
    if (i >= 0) this.link.send("SEEK", { moment: i });
    this.jump.value = -1;
    this.focus();
  }

  // Goes to the moment before or after the current one, or to the end. The server knows the exact
  // position.
  hop(by) { this.link.send("HOP", { by }); }

  drag() {
    this.dragging = true;
    this.seek(Number(this.range.value));
    clearTimeout(this.dragged);
    this.dragged = setTimeout(() => { this.dragging = false; this.range.value = this.now.at_ms; }, 400);
  }

  seek(ms) { this.link.send("SEEK", { ms: Math.round(Math.min(this.now.duration_ms, Math.max(0, ms))) }); }

  playOrPause() { this.link.send(this.now.playing ? "PAUSE" : "PLAY"); this.focus(); }

  toggleHelp() { this.help.hidden = !this.help.hidden; this.focus(); }

  keydown(e) {
    if (e.target.matches("input[type=search], select") || e.metaKey || e.altKey) return;
    if (e.ctrlKey) {
      if (e.shiftKey && e.code === "KeyF") { this.search(); e.preventDefault(); }
      return;
    }
    if (e.key === "Escape" && !this.help.hidden) return this.toggleHelp();
    const action = ACTIONS.get(keyName(e)?.replace(/^KP|Arrow/, ""));
    if (!action || (action === "pause" && e.target.matches("button"))) return;
    this.act(action);
    e.preventDefault();
  }

  // What a key of the table does.
  act(action) {
    const { at_ms: at, duration_ms: all } = this.now;
    const [what, tenth] = action.startsWith("tenth-") ? ["tenth", Number(action.slice(6))] : [action, 0];
    ({
      pause: () => this.playOrPause(),
      "step-on": () => this.link.send("STEP", { by: 1 }),
      "step-back": () => this.link.send("STEP", { by: -1 }),
      "skip-on": () => this.seek(at + SKIP),
      "skip-back": () => this.seek(at - SKIP),
      "long-skip-on": () => this.seek(at + LONG_SKIP),
      "long-skip-back": () => this.seek(at - LONG_SKIP),
      "marker-on": () => this.hop(1),
      "marker-back": () => this.hop(-1),
      tenth: () => this.seek((all * tenth) / 10),
      faster: () => this.faster(1),
      slower: () => this.faster(-1),
      search: () => this.search(),
      next: () => this.step(1),
      start: () => this.seek(0),
      end: () => this.seek(all),
      help: () => this.toggleHelp(),
      quit: () => this.close(),
    })[what]?.();
  }

  // Counted from what was asked for last, which the player may not have said yet.
  faster(by) {
    const at = SPEEDS.indexOf(this.wanted ?? this.now.speed);
    this.setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, (at < 0 ? 2 : at) + by))]);
  }

  setSpeed(speed) {
    this.wanted = speed;
    this.link.send("SPEED", { speed });
  }
}

const label = (moment) => moment.label || (moment.snapshot === null ? "marker" : "snapshot " + moment.snapshot);
