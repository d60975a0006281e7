// A live session in a tile: its screen, who drives it, and the way to type to it.

import { bytes, kept, make } from "./dom.js";
import { Hands } from "./hands.js";
import { GONE, Link } from "./link.js";
import { Painter } from "./painter.js";
import { themes } from "./themes.js";

// The longest message that the server takes.
const LONGEST = (16 << 20) - 1;
const KEYS = [["Esc", "Escape"], ["Tab", "Tab"], ["Ctrl", null], ["Alt", null], ["←", "Left"], ["↓", "Down"], ["↑", "Up"], ["→", "Right"], ["^C", "C-c"]];

// What all tiles have: a head, a screen, a line for what there is to say, and a search.
export class Tile {
  constructor(kind, id, on) {
    this.kind = kind;
    this.id = id;
    this.on = on;
    this.painter = new Painter((from, to) => this.link.send("ROWS", { from, to }));
    this.title = make("span", { className: "title" });
    this.tools = make("span", { className: "tools" });
    this.note = make("div", { className: "note", hidden: true });
    this.note.setAttribute("role", "status");
    this.head = make("header", {}, this.title, this.tools);
    this.query = make("input", { type: "search", placeholder: "Search", oninput: () => this.find(), onkeydown: (e) => this.queryKey(e) });
    this.query.setAttribute("aria-label", "search");
    this.found = make("span", { className: "found" });
    this.finder = make("div", { className: "finder", hidden: true }, this.query, this.found,
      button("↑", "Previous", () => this.step(-1)), button("↓", "Next", () => this.step(1)), button("×", "Close search", () => this.endSearch()));
    this.foot = make("footer");
    this.el = make("section", { className: "tile " + kind }, this.head, this.finder, this.painter.el, this.note, this.foot);
    this.el.tile = this;
    // The user's usual size of letters, and the one that they chose for this screen.
    this.own = Number(kept.get("font", 14));
    this.chosen = null;
    this.whole = button("⤢", "Show the whole screen", () => { this.chosen = null; this.fit(); });
    this.whole.hidden = true;
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.painter.el);
    document.fonts?.ready.then(() => this.fit());
    this.undrawn = 0;
    this.unwatch = themes.watch(() => { this.painter.restyle(); this.recolour(); });
  }

  endTools() {
    this.tools.append(
      button("−", "Smaller letters", () => this.zoom(-1)),
      button("+", "Larger letters", () => this.zoom(1)),
      this.whole,
      button("⌕", "Search (Ctrl+Shift+F)", () => this.search()),
      button("×", "Close this tile", () => this.close()));
  }

  // A frame has come: draw it, and say so once the browser has had time to show it.
  show(frame) {
    const moved = this.painter.apply(frame);
    if (moved) this.fit();
    if (this.undrawn++ === 0) {
      requestAnimationFrame(() => {
        for (; this.undrawn > 0; this.undrawn--) this.link.send("ACK");
      });
    }
  }

  fit() {
    const { painter } = this;
    if (!painter.el.clientWidth) return;
    if (!painter.widths) painter.setFont(this.own, true);
    const grows = this.fitsWindow() || this.chosen !== null;
    const size = this.fitsWindow() ? this.own : this.chosen ?? painter.fitting();
    this.whole.hidden = this.fitsWindow() || this.chosen === null;
    if (size !== painter.size || grows !== painter.grows || painter.dpr !== devicePixelRatio) painter.setFont(size, grows);
    else painter.place();
    this.fitted?.();
  }

  // Whether the session takes the tile's size; otherwise the letters do.
  fitsWindow() { return false; }

  zoom(by) {
    const size = Math.min(32, Math.max(6, Math.round(this.painter.size) + by));
    if (this.fitsWindow()) {
      this.own = size;
      kept.set("font", size);
    } else this.chosen = size;
    this.fit();
  }

  say(text, lasts = 4000) {
    this.note.textContent = text;
    this.note.hidden = !text;
    clearTimeout(this.quiet);
    if (text && lasts) this.quiet = setTimeout(() => { this.note.hidden = true; }, lasts);
  }

  search() {
    this.finder.hidden = false;
    this.query.focus();
    this.query.select();
    this.find();
  }

  endSearch() {
    this.finder.hidden = true;
    this.hits = [];
    this.painter.setHits([], -1);
    this.focus();
  }

  find() {
    if (this.query.value) this.link.send("FIND", { text: this.query.value });
    else this.hear("FIND", { text: "", hits: [] });
  }

  queryKey(e) {
    if (e.key === "Enter") this.step(e.shiftKey ? 1 : -1);
    else if (e.key === "Escape") this.endSearch();
    else return;
    e.preventDefault();
  }

  step(by) {
    if (!this.hits?.length) return;
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    this.showHit();
  }

  showHit() {
    this.found.textContent = this.hits.length ? `${this.at + 1} of ${this.hits.length}${this.tooMany ? "+" : ""}` : this.query.value ? "nothing found" : "";
    if (this.hits.length) this.painter.show(this.hits[this.at][0]);
    this.painter.setHits(this.hits, this.at);
  }

  // What every kind of tile hears.
  hear(verb, value) {
    if (verb === "FRAME") this.show(value);
    else if (verb === "ROWS") this.painter.more(value);
    else if (verb === "FIND" && value.text === this.query.value) {
      this.hits = value.hits;
      this.tooMany = value.more;
      this.at = this.hits.length - 1;
      this.showHit();
    }
  }

  focus() { this.painter.el.focus({ preventScroll: true }); }

  close() {
    this.unwatch();
    this.link.close();
    this.watcher.disconnect();
    this.el.remove();
    this.on.closed(this);
  }
}

export const button = (text, title, onclick) => {
  const el = make("button", { type: "button", textContent: text, title, onclick });
  el.setAttribute("aria-label", title);
  return el;
};

export class Session extends Tile {
  constructor(id, on, claims) {
    super("session", id, on);
    this.claims = claims;
    this.driver = undefined;
    this.who = make("span", { className: "who" });
    this.stick = button("Take", "Take the stick: type here", () => {
      if (this.drives()) this.link.send("RELEASE");
      else { this.link.send("TAKE"); this.focus(); }
    });
    this.stick.className = "stick";
    this.tools.append(this.who, this.stick);
    this.endTools();
    this.title.title = "Ctrl+Shift+L leaves the terminal for the buttons beside this";
    this.hands = new Hands(this.el, this.painter, {
      key: (value) => this.key(value),
      paste: (text) => this.paste(text),
      focus: (gained) => { if (this.drives()) this.link.send("KEY", { focus: gained }); },
      drives: () => this.drives(),
      search: () => this.search(),
      leave: () => [...this.tools.querySelectorAll("button")].find((b) => !b.hidden)?.focus(),
      sticky: (mods) => { for (const b of this.foot.children) b.classList.toggle("held", Boolean(b.mods) && mods.includes(b.mods)); },
    });
    for (const [label, name] of KEYS) {
      const key = button(label, label, () => {
        const mods = { Ctrl: "C-", Alt: "M-" }[label];
        if (mods) this.hands.setSticky(this.hands.sticky.includes(mods) ? this.hands.sticky.replace(mods, "") : this.hands.sticky + mods);
        else this.hands.press(name);
        this.focus();
      });
      key.mods = { Ctrl: "C-", Alt: "M-" }[label];
      // The keyboard on the glass stays.
      key.addEventListener("pointerdown", (e) => e.preventDefault());
      this.foot.append(key);
    }
    this.foot.classList.add("keys");
    this.link = new Link("/ws/session/" + encodeURIComponent(id), {
      open: () => {},
      message: (verb, value) => this.hear(verb, value),
      state: (text, final) => this.state(text, final),
    });
  }

  state(text, final) {
    this.el.classList.toggle("away", Boolean(text));
    if (text === GONE) text = "the session has ended";
    // How it ended says more, and a session that has ended has no connection to lose.
    if (!this.over) this.say(text, 0);
    if (text) this.setDriver(undefined);
    if (final) this.el.classList.add("over");
  }

  hear(verb, value) {
    super.hear(verb, value);
    if (verb === "WELCOME") {
      this.painter.forget();
      // The connection that was lost may not have been missed yet; then it is waited for.
      const lost = this.name;
      this.waits = this.claims && lost !== undefined && value.driver === lost && value.name !== lost;
      this.name = value.name;
      this.may = value.role !== "observer";
      const [program = "", ...args] = value.command ?? [];
      this.label = value.session || [program.split("/").pop(), ...args].join(" ").trim() || this.id;
      this.setTitle();
      this.setDriver(value.driver ?? null);
      this.recolour();
      // Watching takes no stick. A page that started the session, or held the stick before the
      // connection broke, takes it.
      if (this.may && !value.driver && this.claims) this.link.send("TAKE");
    } else if (verb === "FRAME") {
      this.setTitle(value.title);
      this.hands.follow();
    } else if (verb === "EVENT") {
      if (value.name === "DRIVER") this.learn(value.who);
      else if (value.name === "BELL") this.ring();
      else if (value.name === "RECORDING" && value.error) this.say(`the recording failed: ${value.error}`, 0);
      else if (value.name === "CLOSED") {
        this.over = true;
        this.el.classList.add("over");
        const how = value.exit?.signal ? `ended by ${value.exit.signal}` : `ended with ${value.exit?.code ?? 0}`;
        const failed = value.exit?.recording_error;
        this.say(failed ? `${how} · the recording failed: ${failed}` : how, 0);
        this.setDriver(undefined);
      }
    } else if (verb === "OK" && value && "driver" in value) {
      // The answer to SUB: events tell of what happens from there on.
      if (value.driver !== this.driver) this.learn(value.driver);
    } else if (verb === "DENIED") {
      this.say(value.driver && value.driver !== this.name ? `${value.driver} drives: take the stick to type` : value.error ?? "refused");
    }
  }

  // Asks for frames in the colours of the theme.
  recolour() { this.link.send("SUB", { frames: "paint", out: false, max_fps: 60, window: 2, theme: themes.colours() }); }

  // The stick has changed hands: another client has it, or it is free.
  learn(driver) {
    this.setDriver(driver);
    if (this.waits && !driver) this.link.send("TAKE");
    this.waits = false;
  }

  setTitle(title) {
    const text = this.label + (title ? " · " + title : "");
    if (this.title.textContent !== text) this.title.textContent = text;
  }

  drives() { return this.driver !== undefined && this.driver !== null && this.driver === this.name; }

  // null means that the stick is free; undefined, that its holder is not known.
  setDriver(driver) {
    const did = this.drives();
    this.driver = driver;
    const drives = this.drives();
    if (drives) this.claims = true;
    else if (did && driver) this.claims = false;
    this.el.classList.toggle("drives", drives);
    this.who.textContent = driver === undefined ? "" : drives ? "you drive" : driver ? `${driver} drives` : "not driven";
    if (this.may === false) this.who.textContent += this.who.textContent ? " · watching only" : "";
    this.stick.textContent = drives ? "Release" : "Take";
    this.stick.title = drives ? "Let go of the stick" : "Take the stick: type here";
    this.stick.hidden = !this.may || driver === undefined;
    if (did && !drives && driver === null) this.claims = false;
    if (did !== drives) this.fit();
  }

  fitsWindow() { return this.drives(); }

  // While this page drives, the session has the size of its tile.
  fitted() {
    if (!this.drives() || this.finder.hidden === undefined) return;
    clearTimeout(this.resizing);
    this.resizing = setTimeout(() => {
      if (!this.drives()) return;
      const [cols, rows] = this.painter.room();
      const { frame } = this.painter;
      if (cols !== frame.cols || rows !== frame.rows_n) this.link.send("RESIZE", { cols, rows });
    }, 60);
  }

  key(value) {
    if (this.may === false) { this.say("this link lets you watch, not type"); return; }
    if (!this.painter.follow && !value.mouse) this.painter.toBottom();
    return this.link.send("KEY", value);
  }

  // A paste goes in one message: whole, or not at all, and then the person is told.
  paste(text) {
    const size = new Blob([`KEY ${JSON.stringify({ paste: text })}`]).size;
    if (size > LONGEST) this.say(`nothing was pasted: this is ${bytes(size)}, and at most ${bytes(LONGEST)} go at once`, 8000);
    else if (this.key({ paste: text }) === false) this.say("nothing was pasted: there is no connection", this.link.closed ? 4000 : 0);
  }

  ring() {
    this.el.classList.remove("rung");
    void this.el.offsetWidth;
    this.el.classList.add("rung");
  }

  focus() { this.hands.area.focus({ preventScroll: true }); }

  close() { this.hands.close(); super.close(); }
}
