// A WebSocket that comes back. Each message is a verb, a space and JSON.

import { again } from "./entry.js";

const FIRST = 150, LONGEST = 4000;
// What is said of a place that is no more.
export const GONE = "this is no longer here";

export class Link {
  // `on` has open(), message(verb, value) and state(text): "" while connected.
  constructor(path, on) {
    this.path = path;
    this.on = on;
    this.wait = FIRST;
    this.closed = false;
    this.again = () => { if (!this.socket && !this.closed) { clearTimeout(this.timer); this.connect(); } };
    addEventListener("online", this.again);
    document.addEventListener("visibilitychange", this.again);
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.path}`);
    this.socket = socket;
    socket.onopen = () => { this.wait = FIRST; this.on.state(""); this.on.open(); };
    socket.onmessage = (e) => {
      const at = e.data.indexOf(" ");
      const verb = at < 0 ? e.data : e.data.slice(0, at);
      let value = null;
      try { value = at < 0 ? null : JSON.parse(e.data.slice(at + 1)); } catch { return; }
      this.on.message(verb, value);
    };
    socket.onclose = (e) => {
      this.socket = null;
      if (this.closed) return;
      if (e.code === 1000 && e.reason && e.reason !== "gone") {
        // The server has said its last word.
        this.closed = true;
        this.on.state(e.reason, true);
        return;
      }
      this.on.state("connection lost, trying again");
      this.timer = setTimeout(() => this.retry(), this.wait);
      this.wait = Math.min(LONGEST, this.wait * 1.7) * (0.9 + Math.random() / 5);
    };
  }

  async retry() {
    // A socket does not say why it was refused; a plain request does.
    try {
      const { status } = await fetch(this.path, { cache: "no-store" });
      // One that was started anew has forgotten who had logged in.
      if (status === 404 || (status === 401 && !await again())) {
        this.closed = true;
        this.on.state(status === 401 ? "what let you in is no longer good: open another link" : GONE, true);
        return;
      }
    } catch { /* the server is away */ }
    if (!this.closed && !this.socket) this.connect();
  }

  send(verb, value) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(value === undefined ? verb : verb + " " + JSON.stringify(value));
    return true;
  }

  // Cuts the connection as a bad network would.
  cut() { this.socket?.close(4000, "cut"); }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    removeEventListener("online", this.again);
    document.removeEventListener("visibilitychange", this.again);
    this.socket?.close(1000);
  }
}
