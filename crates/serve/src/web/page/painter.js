// Draws a terminal from frames: rows of text with styles, a cursor, and the scrollback above the
// screen. It knows nothing of escape sequences, widths or palettes: the server resolves them all.
//
// Rows are elements in normal flow, only those in view and a few around them, so that selecting,
// copying and following links work as on any page. A row keeps its number while it moves up, and
// its element is replaced only when it looks different, so that a selection stays while the program
// writes.

import { make } from "./dom.js";

const AROUND = 30;
const KEEP = 4000;
const SMALLEST = 5, LARGEST = 32;
// How much smaller or larger letters may become for cells of whole pixels.
const NEARLY = 0.065;
const UNDERLINES = { double: "double", curly: "wavy", dotted: "dotted", dashed: "dashed" };

export class Painter {
  // `ask` is called with a range of rows that are missing, and says whether it could ask for them.
  constructor(ask) {
    this.ask = ask;
    this.rows = new Map();
    this.asked = null;
    this.hits = [];
    this.frame = { cols: 80, rows_n: 24, top: 0, first: 0, fg: "e5e5e5", bg: "000000", cursor: { row: 0, col: 0, visible: false } };
    this.view = [0, 0];
    this.follow = true;
    this.list = make("div", { className: "rows" });
    this.caret = make("div", { className: "caret" });
    this.marks = make("div", { className: "marks" });
    this.space = make("div", { className: "space" }, this.list, this.marks, this.caret);
    this.probe = make("span", { className: "probe", textContent: "W".repeat(64) });
    this.el = make("div", { className: "screen", tabIndex: -1 }, this.space, make("div", { className: "measure" }, this.probe));
    this.el.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.el.addEventListener("copy", (e) => this.copy(e));
    // Whether a whole frame is another place altogether, as in a recording.
    this.jumps = false;
    this.size = 14;
    this.shape = [0.6, 1.2];
    this.cw = 8;
    this.lh = 16;
  }

  // Sets the size of letters, rounded so that cells are whole pixels wide: then lines and blocks of
  // neighbouring cells meet without a seam. `grows` allows rounding up beyond the tile.
  setFont(size, grows) {
    this.size = Math.min(LARGEST, Math.max(SMALLEST, size));
    this.grows = grows;
    this.dpr = devicePixelRatio;
    if (!this.measure(this.size)) return;
    const lh = this.lh, pixels = this.cw * this.dpr;
    let whole = Math.round(pixels), spacing = 0;
    if (!grows && whole > pixels && (whole / this.dpr) * this.frame.cols > this.el.clientWidth) whole--;
    if (whole >= 7 && Math.abs(whole - pixels) <= pixels * NEARLY) {
      // Browsers don't have every size: take the larger one, with letters set a little closer.
      const wanted = whole / this.dpr, nearly = (this.size * whole) / pixels;
      this.measure(nearly);
      if (this.cw < wanted - 0.005) this.measure(nearly + 0.5);
      spacing = Math.min(0, wanted - this.cw);
      this.cw += spacing;
      if (!grows) this.lh = Math.min(this.lh, lh);
    }
    this.list.style.letterSpacing = spacing + "px";
    this.el.style.setProperty("--lh", this.lh + "px");
    this.el.style.setProperty("--cw", this.cw + "px");
    this.widths = true;
    this.place();
  }

  // What becomes of letters of this size.
  measure(size) {
    this.el.style.fontSize = size + "px";
    const box = this.probe.getBoundingClientRect();
    if (!box.width) return false;
    this.cw = box.width / 64;
    this.lh = Math.max(1, Math.round(box.height));
    this.shape = [this.cw / size, box.height / size];
    return true;
  }

  // The size of letters at which the whole screen is seen.
  fitting() {
    const [perCol, perRow] = this.shape, { cols, rows_n } = this.frame, { clientWidth, clientHeight } = this.el;
    const wide = clientWidth / (cols * perCol), high = clientHeight / (rows_n * perRow);
    // Half pixels are not worth a blurred letter.
    let size = Math.min(LARGEST, Math.max(SMALLEST, Math.floor(Math.min(wide, high) * 2 + 0.5) / 2));
    const over = () => size * perCol * cols > clientWidth || Math.round(size * perRow) * rows_n > clientHeight;
    while (size > SMALLEST && over()) size -= 0.5;
    return size;
  }

  // Columns and rows that fit at this size of letters.
  room() {
    return [Math.max(2, Math.floor(this.el.clientWidth / this.cw)), Math.max(1, Math.floor(this.el.clientHeight / this.lh))];
  }

  apply(frame) {
    const old = this.frame;
    const fresh = (frame.full && this.jumps) || frame.cols !== old.cols || frame.top < old.top || frame.first < old.first;
    if (fresh) this.restyle();
    const gone = fresh ? 0 : frame.first - old.first;
    this.frame = frame;
    this.el.style.color = "#" + frame.fg;
    this.el.style.backgroundColor = "#" + frame.bg;
    this.take(frame);
    if (!fresh) this.drop(old.top, Math.min(frame.top, old.top + old.rows_n), frame.changed);
    this.place(gone);
    return fresh || frame.rows_n !== old.rows_n;
  }

  // Rows may have changed before they left the screen: forgets those that were not sent again.
  drop(from, to, told) {
    if (from >= to) return;
    const known = new Set(told.map((row) => row[0]));
    for (let number = from; number < to; number++) {
      if (known.has(number) || !this.rows.delete(number)) continue;
      if (number >= this.view[0] && number < this.view[1]) this.list.children[number - this.view[0]].replaceChildren();
    }
  }

  // The colours of all rows change: they come again.
  restyle() {
    this.rows.clear();
    this.list.replaceChildren();
    this.view = [0, 0];
    this.asked = null;
  }

  // What was asked for on another connection does not come any more.
  forget() { this.asked = null; }

  // Rows that were asked for.
  more(answer) {
    this.asked = null;
    if (answer.cols !== this.frame.cols) { this.fetch(); return; }
    // The screen's own rows come with its frames, and may be newer.
    this.take({ ...answer, changed: answer.changed.filter((row) => row[0] < this.frame.top) });
    this.place();
  }

  take(frame) {
    const looks = frame.styles.map((style) => this.look(style));
    for (const [number, flags, runs] of frame.changed) {
      const row = { flags, runs: runs.map(([col, width, text, style]) => [col, width, text, style ? looks[style - 1] : null]) };
      row.key = flags + "|" + row.runs.map((r) => r[0] + "," + r[1] + (r[3] ? r[3].key : "") + "\u0001" + r[2]).join("\u0002");
      const known = this.rows.get(number);
      if (known && known.key === row.key) continue;
      this.rows.set(number, row);
      const at = number - this.view[0];
      if (at >= 0 && number < this.view[1]) this.fill(this.list.children[at], row);
    }
    if (this.rows.size > KEEP) {
      const [from, to] = this.view;
      for (const number of this.rows.keys()) {
        if (this.rows.size <= KEEP / 2) break;
        if ((number < from || number >= to) && number < this.frame.top) this.rows.delete(number);
      }
    }
  }

  look(style) {
    const css = [], attrs = style.a ?? "";
    const fg = style.f ?? this.frame.fg, bg = style.b ?? this.frame.bg;
    if (attrs.includes("c")) css.push("color:transparent");
    else if (attrs.includes("d")) css.push("color:#" + mix(fg, bg));
    else if (style.f) css.push("color:#" + style.f);
    if (style.b) css.push("background-color:#" + style.b);
    if (attrs.includes("b")) css.push("font-weight:bold");
    if (attrs.includes("i")) css.push("font-style:italic");
    const lines = [style.u && "underline", attrs.includes("s") && "line-through"].filter(Boolean);
    // The browser's own would stand in the row above.
    if (attrs.includes("o")) css.push("box-shadow:inset 0 1px currentColor");
    if (lines.length) css.push("text-decoration:" + lines.join(" ") + (UNDERLINES[style.u] ? " " + UNDERLINES[style.u] : "") + (style.uc ? " #" + style.uc : ""));
    const classes = (style.b || attrs.includes("o") ? "block" : "") + (attrs.includes("k") ? " blink" : "");
    const text = css.join(";");
    return { css: text, classes, link: style.l, key: text + classes + (style.l ?? "") };
  }

  fill(el, row) {
    const parts = [];
    let x = 0;
    for (const [col, width, text, look] of row.runs) {
      if (col > x) parts.push(" ".repeat(col - x));
      x = col + Math.abs(width);
      const pinned = width < 0;
      if (!look && !pinned) { parts.push(text); continue; }
      const part = look?.link ? make("a", { href: look.link, target: "_blank", rel: "noopener noreferrer", title: look.link }) : document.createElement("span");
      part.textContent = text;
      if (look?.css) part.style.cssText = look.css;
      part.className = ((look?.classes ?? "") + (pinned ? " pin" : "")).trim();
      if (pinned) part.style.width = `calc(var(--cw) * ${-width})`;
      parts.push(part);
    }
    el.className = "row" + (row.flags & 4 ? " dtop" : row.flags & 8 ? " dbottom" : row.flags & 2 ? " dwide" : "");
    el.replaceChildren(...parts);
  }

  // Where everything stands. `gone` rows have left at the far end.
  place(gone = 0) {
    const { frame, lh } = this;
    const total = frame.top - frame.first + frame.rows_n;
    this.space.style.height = total * lh + "px";
    this.space.style.width = frame.cols * this.cw + "px";
    if (this.follow) this.el.scrollTop = total * lh;
    else if (gone) this.el.scrollTop = Math.max(0, this.el.scrollTop - gone * lh);
    this.window();
    const c = frame.cursor;
    this.caret.hidden = !c.visible;
    this.caret.className = "caret " + c.shape + (c.blink ? " blinks" : "");
    this.caret.textContent = c.shape === "block" ? c.text || " " : "";
    this.caret.style.left = c.col * this.cw + "px";
    this.caret.style.top = (frame.top - frame.first + c.row) * lh + "px";
    this.caret.style.width = (c.width || 1) * this.cw + "px";
    this.caret.style.setProperty("--caret", "#" + (c.colour ?? frame.fg));
    this.caret.style.setProperty("--paper", "#" + frame.bg);
    this.placeHits();
  }

  // Makes the elements of the rows in view.
  window() {
    const { frame, lh, el } = this;
    const end = frame.top + frame.rows_n;
    const from = Math.max(frame.first, Math.min(end, frame.first + Math.floor(el.scrollTop / lh) - AROUND));
    const to = Math.min(end, frame.first + Math.ceil((el.scrollTop + el.clientHeight) / lh) + AROUND);
    let [was, till] = this.view;
    if (from >= till || to <= was) {
      this.list.replaceChildren();
      was = till = from;
    }
    for (; was < from; was++) this.list.firstChild.remove();
    for (; till > to; till--) this.list.lastChild.remove();
    const element = (number) => {
      const row = make("div", { className: "row" });
      const known = this.rows.get(number);
      if (known) this.fill(row, known);
      return row;
    };
    while (was > from) this.list.prepend(element(--was));
    while (till < to) this.list.append(element(till++));
    this.view = [from, to];
    this.list.style.transform = `translateY(${(from - frame.first) * lh}px)`;
    this.fetch();
  }

  fetch() {
    if (this.asked) return;
    const [from, to] = this.view;
    const end = Math.min(to, this.frame.top);
    let start = from;
    while (start < end && this.rows.has(start)) start++;
    if (start >= end) return;
    const range = [start, Math.min(end, start + 400)];
    if (this.ask(...range)) this.asked = range;
  }

  scrolled() {
    const below = this.space.offsetHeight - this.el.scrollTop - this.el.clientHeight;
    this.follow = below < this.lh / 2;
    this.window();
  }

  // Scrolls by so many rows.
  scroll(rows) {
    this.el.scrollTop += rows * this.lh;
    this.scrolled();
  }

  toBottom() {
    this.follow = true;
    this.place();
  }

  // Brings a row into view.
  show(number) {
    const y = (number - this.frame.first) * this.lh;
    if (y < this.el.scrollTop || y + this.lh > this.el.scrollTop + this.el.clientHeight) {
      this.el.scrollTop = Math.max(0, y - this.el.clientHeight / 2);
    }
    this.scrolled();
  }

  // Marks places: [row, col, width]; `current` is the one of them that is looked at.
  setHits(hits, current) {
    this.hits = hits.map((hit, i) => [...hit, i === current]);
    this.placeHits();
  }

  placeHits() {
    const [from, to] = this.view, { cols, first } = this.frame;
    const marks = [];
    for (let [row, col, width, current] of this.hits) {
      // A hit may go on in the next rows.
      while (width > 0) {
        const here = Math.max(1, Math.min(width, cols - col));
        if (row >= from && row < to) {
          const mark = make("div", { className: current ? "mark current" : "mark" });
          mark.style.left = col * this.cw + "px";
          mark.style.top = (row - first) * this.lh + "px";
          mark.style.width = here * this.cw + "px";
          marks.push(mark);
        }
        width -= here;
        row++;
        col = 0;
      }
    }
    if (marks.length || this.marks.firstChild) this.marks.replaceChildren(...marks);
  }

  // The cell at a place of the window: column, row of the screen, and both in pixels.
  cell(x, y) {
    const box = this.space.getBoundingClientRect();
    const px = x - box.left, py = y - box.top - (this.frame.top - this.frame.first) * this.lh;
    const within = (n, max) => Math.min(max - 1, Math.max(0, n));
    return {
      col: within(Math.floor(px / this.cw), this.frame.cols),
      row: within(Math.floor(py / this.lh), this.frame.rows_n),
      x: within(Math.round(px), 65535),
      y: within(Math.round(py), 65535),
    };
  }

  // The selected text, as the program wrote it: without blanks at the ends of rows, wrapped rows
  // joined.
  selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return "";
    const range = selection.getRangeAt(0);
    if (!range.intersectsNode(this.list)) return "";
    let text = "";
    const rows = [...this.list.children].map((el, i) => [el, this.rows.get(this.view[0] + i)]).filter(([el]) => range.intersectsNode(el));
    rows.forEach(([el, row], i) => {
      const part = document.createRange();
      part.selectNodeContents(el);
      if (el.contains(range.startContainer)) part.setStart(range.startContainer, range.startOffset);
      if (el.contains(range.endContainer)) part.setEnd(range.endContainer, range.endOffset);
      const last = i === rows.length - 1, wraps = row && row.flags & 1;
      // A selection may end between words, where a blank is one that was meant.
      const rest = document.createRange();
      rest.selectNodeContents(el);
      rest.setStart(part.endContainer, part.endOffset);
      const kept = wraps || rest.toString().trim() ? part.toString() : part.toString().trimEnd();
      text += last || wraps ? kept : kept + "\n";
    });
    return text;
  }

  copy(e) {
    const text = this.selected();
    if (!text) return;
    e.clipboardData.setData("text/plain", text);
    e.preventDefault();
  }
}

// A faint colour: half way to the background.
const mix = (a, b) => {
  let out = "";
  for (let i = 0; i < 6; i += 2) {
    const one = (hex) => parseInt(hex.slice(i, i + 2), 16);
    out += Math.round(one(a) * 0.55 + one(b) * 0.45).toString(16).padStart(2, "0");
  }
  return out;
};
