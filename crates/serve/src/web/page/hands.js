// Keyboard, mouse, touch and clipboard, as keys with names. The session encodes them, because it
// knows the modes in force.

import { make } from "./dom.js";

const NAMED = new Set(["Enter", "Tab", "Backspace", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End",
  "PageUp", "PageDown", "Insert", "Delete", "PrintScreen", "Pause"]);
const BUTTONS = ["left", "middle", "right"];
// What browsers make of a notch of the wheel, in pixels.
const NOTCH = 100;
// Something to delete, or a keyboard on glass would not tell that it was asked to.
const FILLER = "\u200b\u200b";

// The name of a key event, or null when it is none for the program.
export const keyName = (e) => {
  const graph = e.getModifierState?.("AltGraph");
  const pad = e.code?.startsWith("Numpad");
  let key = null, special = true;
  if (NAMED.has(e.key)) key = pad && e.key === "Enter" ? "KPEnter" : e.key;
  else if (/^F([1-9]|[12][0-9]|3[0-5])$/.test(e.key)) key = e.key;
  else if (e.key === "ContextMenu") key = "Menu";
  else if (e.key === " ") key = "Space";
  else if ([...e.key].length === 1) {
    special = false;
    key = pad && "0123456789.+-*/=,".includes(e.key) ? "KP" + e.key : e.key;
  } else return null;
  let mods = "";
  if (e.ctrlKey && !graph) mods += "C-";
  if (e.altKey && !graph) mods += "M-";
  if (e.metaKey) mods += "D-";
  if (e.shiftKey && (special || mods)) mods += "S-";
  return mods + (mods && !special && !key.startsWith("KP") ? key.toLowerCase() : key);
};

export class Hands {
  // `to` has key(value), paste(text) and what else a panel does; `painter` has the screen.
  constructor(panel, painter, to) {
    this.painter = painter;
    this.to = to;
    this.held = null;
    this.sticky = "";
    this.turned = 0;
    this.finger = null;
    this.area = make("textarea", { className: "hands", value: FILLER, spellcheck: false });
    for (const [name, value] of [["autocapitalize", "off"], ["autocomplete", "off"], ["autocorrect", "off"], ["aria-label", "terminal input; Ctrl+Shift+L leaves it"]]) {
      this.area.setAttribute(name, value);
    }
    painter.space.append(this.area);
    panel.addEventListener("keydown", (e) => this.keydown(e));
    this.area.addEventListener("beforeinput", (e) => this.beforeInput(e));
    this.area.addEventListener("compositionstart", () => { this.area.classList.add("composing"); });
    this.area.addEventListener("compositionend", (e) => {
      this.area.classList.remove("composing");
      if (e.data) this.type(e.data);
      this.refill();
    });
    this.area.addEventListener("input", (e) => { if (!e.isComposing) this.refill(); });
    panel.addEventListener("paste", (e) => {
      if (e.target !== this.area && e.target.matches?.("input, textarea")) return;
      const text = e.clipboardData.getData("text/plain");
      if (text) this.to.paste(text);
      e.preventDefault();
    });
    this.area.addEventListener("focus", () => this.focus(true));
    this.area.addEventListener("blur", () => this.focus(false));
    const screen = painter.el;
    screen.addEventListener("mousedown", (e) => this.mousedown(e));
    screen.addEventListener("mousemove", (e) => this.mousemove(e));
    addEventListener("mouseup", this.up = (e) => this.mouseup(e));
    screen.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    screen.addEventListener("touchstart", (e) => { this.finger = e.touches.length === 1 ? e.touches[0].clientY : null; }, { passive: true });
    screen.addEventListener("touchmove", (e) => this.swipe(e), { passive: false });
    screen.addEventListener("contextmenu", (e) => { if (this.reports(e)) e.preventDefault(); });
    screen.addEventListener("click", () => { if (!painter.selected()) this.area.focus({ preventScroll: true }); });
  }

  close() { removeEventListener("mouseup", this.up); }

  refill() { this.area.value = FILLER; this.area.setSelectionRange(FILLER.length, FILLER.length); }

  // Puts what is being composed where it will stand.
  follow() {
    const { caret } = this.painter;
    this.area.style.left = caret.style.left;
    this.area.style.top = caret.style.top;
  }

  focus(gained) {
    this.painter.el.classList.toggle("focused", gained);
    if (this.painter.frame.focus) this.to.focus(gained);
  }

  type(text) {
    if (this.sticky && [...text].length === 1) { this.to.key({ keys: [this.sticky + text.toLowerCase()] }); this.setSticky(""); }
    else this.to.key({ text: text.replaceAll("\u200b", "") });
  }

  setSticky(mods) { this.sticky = mods; this.to.sticky(mods); }

  press(name) { this.to.key({ keys: [this.sticky + name] }); if (this.sticky) this.setSticky(""); }

  keydown(e) {
    if (e.target !== this.area && e.target.matches?.("input, textarea, select, button")) return;
    if (e.isComposing || e.keyCode === 229 || e.key === "Dead" || e.key === "Unidentified") return;
    const painter = this.painter;
    // The browser's own: copy and paste, and what belongs to its windows.
    if (e.metaKey) return;
    if (e.ctrlKey && e.shiftKey && e.code === "KeyC") { document.execCommand("copy"); e.preventDefault(); return; }
    if ((e.ctrlKey && e.shiftKey && e.code === "KeyV") || (e.key === "Insert" && (e.shiftKey || e.ctrlKey))) return;
    if (e.ctrlKey && e.shiftKey && e.code === "KeyF") { this.to.search(); e.preventDefault(); return; }
    // Tab is the program's, so there is another way out for those who have no mouse.
    if (e.ctrlKey && e.shiftKey && e.code === "KeyL") { this.to.leave(); e.preventDefault(); return; }
    if (e.shiftKey && !e.ctrlKey && !e.altKey) {
      const page = Math.max(1, Math.floor(painter.el.clientHeight / painter.lh) - 1);
      const by = { PageUp: -page, PageDown: page, Home: -1e9, End: 1e9 }[e.key];
      if (by) { painter.scroll(by); e.preventDefault(); return; }
    }
    const name = keyName(e);
    if (!name) return;
    e.preventDefault();
    if (document.activeElement !== this.area) this.area.focus({ preventScroll: true });
    this.press(name);
  }

  beforeInput(e) {
    if (e.isComposing || e.inputType === "insertCompositionText") return;
    e.preventDefault();
    switch (e.inputType) {
      case "insertText": case "insertReplacementText": this.type(e.data ?? e.dataTransfer?.getData("text/plain") ?? ""); break;
      case "insertLineBreak": case "insertParagraph": this.press("Enter"); break;
      case "deleteContentBackward": this.press("Backspace"); break;
      case "deleteContentForward": this.press("Delete"); break;
      case "deleteWordBackward": this.press("M-Backspace"); break;
    }
  }

  // Whether the mouse is the program's; with Shift it is always the person's own.
  reports(e) { return this.painter.frame.mouse && !e.shiftKey && this.to.drives(); }

  mouse(kind, button, e) {
    const mods = (e.ctrlKey ? "C" : "") + (e.altKey ? "M" : "") + (e.shiftKey ? "S" : "");
    this.to.key({ mouse: { kind, ...(button ? { button } : {}), mods, ...this.painter.cell(e.clientX, e.clientY) } });
  }

  mousedown(e) {
    if (this.reports(e)) {
      this.held = BUTTONS[e.button] ?? null;
      if (this.held) this.mouse("press", this.held, e);
      this.area.focus({ preventScroll: true });
      e.preventDefault();
    } else if (this.painter.frame.mouse && e.shiftKey && e.button === 0) {
      // With Shift held, a browser would go on with the last selection.
      const at = caretAt(e);
      if (at) { getSelection().collapse(at.node, at.offset); this.marking = true; }
      e.preventDefault();
    }
  }

  mousemove(e) {
    if (this.marking) {
      const at = caretAt(e);
      if (at) getSelection().extend(at.node, at.offset);
      return;
    }
    if (!this.held && !(this.painter.frame.moves && this.reports(e))) return;
    const { col, row } = this.painter.cell(e.clientX, e.clientY);
    if (this.last === col + "," + row) return;
    this.last = col + "," + row;
    this.mouse("move", this.held, e);
  }

  mouseup(e) {
    this.marking = false;
    if (!this.held) return;
    this.mouse("release", this.held, e);
    this.held = null;
  }

  // Whether it is the program that scrolls; otherwise what lies above the screen does.
  scrolls(e) {
    const { frame } = this.painter;
    return !e.shiftKey && this.to.drives() && (frame.mouse || (frame.wheel && this.painter.follow));
  }

  wheel(e) {
    if (!e.deltaY || e.ctrlKey || !this.scrolls(e)) return;
    e.preventDefault();
    this.turn((e.deltaMode ? e.deltaY * NOTCH / 3 : e.deltaY) / NOTCH, e);
  }

  // A finger that moves over a program that scrolls by itself turns its wheel.
  swipe(e) {
    if (this.finger === null || e.touches.length !== 1 || !this.scrolls(e)) return;
    e.preventDefault();
    const touch = e.touches[0];
    this.turn((this.finger - touch.clientY) / (3 * this.painter.lh), touch);
    this.finger = touch.clientY;
  }

  // Turns the wheel by so many notches. A rest below one notch counts next time, unless the
  // direction changes.
  turn(notches, e) {
    if (Math.sign(this.turned) !== Math.sign(notches)) this.turned = 0;
    this.turned += notches;
    for (; Math.abs(this.turned) >= 0.5; this.turned -= Math.sign(this.turned) * Math.min(1, Math.abs(this.turned))) {
      this.mouse("press", this.turned < 0 ? "wheelup" : "wheeldown", e);
    }
  }
}

const caretAt = (e) => {
  const at = document.caretPositionFromPoint?.(e.clientX, e.clientY);
  if (at) return { node: at.offsetNode, offset: at.offset };
  const range = document.caretRangeFromPoint?.(e.clientX, e.clientY);
  return range ? { node: range.startContainer, offset: range.startOffset } : null;
};
