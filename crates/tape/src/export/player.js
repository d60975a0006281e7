"use strict";
(() => {
  const json = (el) => JSON.parse(el.textContent);
  const head = json(document.getElementById("head"));
  const tail = json(document.getElementById("tail"));
  const frames = [];
  document.querySelectorAll("script.frames").forEach((el) => frames.push(...json(el)));
  const styles = [];
  for (const f of frames) if (f.d) styles.push(...f.d);

  // A state is the rows as they stand; rows are shared between states, so one every hundred frames is cheap.
  const EVERY = 100;
  const keys = [];
  const blank = () => ({ cols: head.cols, rows: Array(head.rows).fill([]), cursor: [0, 0, 0] });
  const step = (s, f) => {
    if (f.s) { s.cols = f.s[0]; s.rows = Array(f.s[1]).fill([]); }
    for (const [y, runs] of f.r) s.rows[y] = runs;
    s.cursor = f.c;
  };
  const copy = (s) => ({ cols: s.cols, rows: s.rows.slice(), cursor: s.cursor });
  {
    const s = blank();
    frames.forEach((f, i) => { if (i % EVERY === 0) keys.push(copy(s)); step(s, f); });
  }
  const stateAt = (i) => {
    const k = Math.max(0, Math.floor(i / EVERY));
    const s = keys.length ? copy(keys[k]) : blank();
    for (let j = k * EVERY; j <= i && j < frames.length; j++) step(s, frames[j]);
    return s;
  };
  const frameAt = (t) => {
    let lo = 0, hi = frames.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (frames[mid].t <= t) lo = mid + 1; else hi = mid; }
    return lo - 1;
  };
  const rowText = (runs) => {
    let text = "", at = 0;
    for (const [x, , t, width] of runs) {
      text += " ".repeat(Math.max(0, x - at)) + t;
      at = x + (width || [...t].length);
    }
    return text;
  };

  const make = (tag, props, ...kids) => {
    const el = Object.assign(document.createElement(tag), props);
    el.append(...kids);
    return el;
  };
  const root = document.getElementById("player");
  const screen = make("div", { id: "screen", tabIndex: 0 });
  screen.style.color = head.fg;
  screen.style.background = head.bg;
  screen.setAttribute("role", "img");
  screen.setAttribute("aria-label", "terminal screen");
  const play = make("button", { textContent: "Play" });
  const seek = make("input", { type: "range", min: 0, max: Math.max(1, tail.duration), value: 0, step: 1 });
  seek.setAttribute("aria-label", "position");
  const time = make("span", { className: "time" });
  const speed = make("select", {}, ...[0.5, 1, 2, 4, 8].map((n) => make("option", { value: n, textContent: n + "x" })));
  speed.value = "1";
  const copyButton = make("button", { textContent: "Copy screen" });
  const query = make("input", { type: "search", placeholder: "Search" });
  const found = make("span");
  root.append(screen, make("div", { className: "bar" }, play, seek, time, speed),
    make("div", { className: "bar" }, query, found, copyButton));

  let shown = -2, now = 0, playing = false, last = 0, needle = "";
  const draw = () => {
    const i = frameAt(now);
    if (i === shown) return;
    shown = i;
    const s = i < 0 ? blank() : stateAt(i);
    const rows = s.rows.map((runs) => {
      const row = make("div", { className: "row" });
      let x = 0;
      const lit = needle && rowText(runs).toLowerCase().includes(needle);
      for (const [col, id, text, width] of runs) {
        if (col > x) row.append(" ".repeat(col - x));
        const [fg, bg, at] = styles[id];
        const el = make("span", { textContent: text });
        let f = fg, b = bg;
        if (at.includes("v")) { f = bg || head.bg; b = fg || head.fg; }
        if (at.includes("c")) f = b || head.bg;
        if (f) el.style.color = f;
        if (b) el.style.background = b;
        if (at.includes("b")) el.style.fontWeight = "bold";
        if (at.includes("f")) el.style.opacity = "0.6";
        if (at.includes("i")) el.style.fontStyle = "italic";
        const line = [at.includes("u") && "underline", at.includes("s") && "line-through", at.includes("o") && "overline"].filter(Boolean);
        if (line.length) el.style.textDecoration = line.join(" ");
        if (width) { el.className = "cell"; el.style.width = width + "ch"; }
        if (lit && text.toLowerCase().includes(needle)) el.classList.add("hit");
        row.append(el);
        x = col + (width || [...text].length);
      }
      return row;
    });
    screen.replaceChildren(...rows);
    if (s.cursor[2]) {
      const cursor = make("div", { className: "cursor" });
      cursor.style.left = `calc(.5rem + ${s.cursor[1]}ch)`;
      cursor.style.top = `calc(.5rem + ${s.cursor[0] * 16}px)`;
      screen.append(cursor);
    }
    screen.style.minWidth = s.cols + "ch";
  };
  const clock = (ms) => {
    const s = Math.floor(ms / 1000), two = (n) => String(n).padStart(2, "0");
    const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
    return (h ? h + ":" + two(m) : m) + ":" + two(s % 60);
  };
  const show = () => {
    draw();
    seek.value = now;
    time.textContent = clock(now) + " / " + clock(tail.duration);
    play.textContent = playing ? "Pause" : "Play";
  };
  const go = (t) => { now = Math.min(Math.max(0, t), tail.duration); show(); };
  const tick = (at) => {
    if (!playing) return;
    now += (at - last) * Number(speed.value);
    last = at;
    if (now >= tail.duration) { now = tail.duration; playing = false; }
    show();
    if (playing) requestAnimationFrame(tick);
  };
  const toggle = () => {
    playing = !playing;
    if (playing) {
      if (now >= tail.duration) now = 0;
      last = performance.now();
      requestAnimationFrame(tick);
    }
    show();
  };
  if (tail.moments.length) {
    const names = tail.moments.map(([t, label], i) => make("option", { value: i, textContent: clock(t) + "  " + (label || "marker") }));
    const marks = make("select", {}, make("option", { value: "", textContent: "Markers" }), ...names);
    marks.onchange = () => { if (marks.value !== "") go(tail.moments[marks.value][0]); marks.value = ""; screen.focus(); };
    query.before(marks);
  }
  play.onclick = toggle;
  seek.oninput = () => go(Number(seek.value));
  copyButton.onclick = () => {
    const s = stateAt(Math.max(0, frameAt(now)));
    const text = s.rows.map((r) => rowText(r).trimEnd()).join("\n");
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    copyButton.textContent = done ? "Copied" : "Select and copy by hand";
  };

  // Search goes through what each frame changed, and jumps from hit to hit.
  let hits = [];
  const search = () => {
    needle = query.value.toLowerCase();
    hits = needle ? frames.filter((f) => f.r.some(([, runs]) => rowText(runs).toLowerCase().includes(needle))).map((f) => f.t) : [];
    found.textContent = needle ? hits.length + " moments" : "";
    shown = -2;
  };
  query.oninput = () => { search(); if (hits.length) go(hits[0]); else show(); };
  query.onkeydown = (e) => {
    if (e.key !== "Enter" || !hits.length) return;
    const next = e.shiftKey ? [...hits].reverse().find((t) => t < now) : hits.find((t) => t > now);
    go(next === undefined ? hits[e.shiftKey ? hits.length - 1 : 0] : next);
  };
  document.addEventListener("keydown", (e) => {
    if (e.target === query || e.ctrlKey || e.metaKey || e.altKey) return;
    const i = frameAt(now);
    const marks = tail.moments.map((m) => m[0]);
    const keys = {
      " ": toggle,
      ArrowLeft: () => go(now - 5000),
      ArrowRight: () => go(now + 5000),
      ".": () => frames[i + 1] && go(frames[i + 1].t),
      ",": () => frames[i - 1] && go(frames[i - 1].t),
      "[": () => go([...marks].reverse().find((t) => t < now) ?? 0),
      "]": () => go(marks.find((t) => t > now) ?? tail.duration),
    };
    if (e.key >= "0" && e.key <= "9") go((tail.duration * Number(e.key)) / 10);
    else if (keys[e.key]) keys[e.key]();
    else return;
    e.preventDefault();
  });
  go(frames.length ? frames[0].t : 0);
})();
