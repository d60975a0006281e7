// As much of a browser as the page's scripts touch, so that they run in node without a build step.
// Nothing is laid out: a test sets the sizes that it needs.

class Style {
  setProperty(name, value) { this[name] = value; }
}

class ClassList {
  constructor() { this.names = new Set(); }
  add(name) { this.names.add(name); }
  remove(name) { this.names.delete(name); }
  contains(name) { return this.names.has(name); }
  toggle(name, on = !this.names.has(name)) { if (on) this.add(name); else this.remove(name); }
}

export class Element extends EventTarget {
  constructor(tag) {
    super();
    Object.assign(this, { tag, className: "", id: "", title: "", value: "", hidden: false, tabIndex: 0 });
    Object.assign(this, { style: new Style(), classList: new ClassList(), attributes: {}, dataset: {} });
    Object.assign(this, { childNodes: [], parent: null, clientWidth: 0, clientHeight: 0, scrollTop: 0, offsetHeight: 0 });
    if (tag === "a") Object.assign(this, { href: "", target: "", rel: "" });
  }

  get children() { return this.childNodes.filter((kid) => kid instanceof Element); }
  get firstChild() { return this.childNodes[0] ?? null; }
  get lastChild() { return this.childNodes.at(-1) ?? null; }
  get textContent() { return this.childNodes.map((kid) => (kid instanceof Element ? kid.textContent : kid)).join(""); }
  set textContent(text) { this.childNodes = text === "" ? [] : [String(text)]; }

  adopt(kids) {
    for (const kid of kids) if (kid instanceof Element) { kid.remove(); kid.parent = this; }
    return kids;
  }

  append(...kids) { this.childNodes.push(...this.adopt(kids)); }
  prepend(...kids) { this.childNodes.unshift(...this.adopt(kids)); }
  replaceChildren(...kids) { this.childNodes = []; this.append(...kids); }
  remove() { if (this.parent) this.parent.childNodes = this.parent.childNodes.filter((kid) => kid !== this); this.parent = null; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  setSelectionRange() {}
  select() {}
  after(...kids) { const { childNodes } = this.parent; childNodes.splice(childNodes.indexOf(this) + 1, 0, ...this.parent.adopt(kids)); }
  before(...kids) { const { childNodes } = this.parent; childNodes.splice(childNodes.indexOf(this), 0, ...this.parent.adopt(kids)); }
  // Knows names of tags alone.
  matches(selector) { return selector.split(", ").some((one) => one.split("[")[0] === this.tag); }
  focus() { document.activeElement = this; }
  getBoundingClientRect() { return { left: 0, top: 0, width: this.clientWidth, height: this.clientHeight }; }
}

// Puts a fresh browser into the global scope.
export const open = () => {
  const page = new Element("document");
  page.createElement = (tag) => new Element(tag);
  page.activeElement = null;
  page.documentElement = new Element("html");
  const window = new EventTarget();
  const stored = new Map();
  Object.assign(globalThis, {
    document: page,
    devicePixelRatio: 1,
    location: { protocol: "http:", host: "deck.example" },
    requestAnimationFrame: () => {},
    ResizeObserver: class { observe() {} disconnect() {} },
    localStorage: { getItem: (key) => stored.get(key) ?? null, setItem: (key, value) => stored.set(key, String(value)) },
    addEventListener: window.addEventListener.bind(window),
    removeEventListener: window.removeEventListener.bind(window),
  });
  return { window };
};

// A socket that a test opens, speaks through and closes.
export class Socket {
  static OPEN = 1;
  static all = [];

  constructor(url) {
    Object.assign(this, { url, readyState: 0, sent: [] });
    Socket.all.push(this);
  }

  static last() { return Socket.all.at(-1); }
  send(text) { this.sent.push(text); }
  close(code, reason = "") { this.end(code, reason); }
  open() { this.readyState = Socket.OPEN; this.onopen(); }
  say(text) { this.onmessage({ data: text }); }
  end(code, reason = "") { this.readyState = 3; this.onclose({ code, reason }); }
}
