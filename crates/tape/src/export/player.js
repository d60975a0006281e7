"use strict";
(() => {
  const json = (el) => JSON.parse(el.textContent);
  const head = json(document.getElementById("head"));
  const tail = json(document.getElementById("tail"));
  const frames = [];
  document.querySelectorAll("script.frames").forEach((el) => frames.push(...json(el)));
  const styles = [];
  for (const f of frames) if (f.d) styles.push(...f.d);

  // A state is the rows of the screen. States share rows, so one every hundred frames is cheap.
  const EVERY = 100;
  const keys = [];
  // A row is [number, runs, flags]. Flags: 1 its text goes on in the next row, 2 double width, 4
  // and 8 upper and lower half of double height.
  const EMPTY = [0, [], 0];
  const blank = () => ({ cols: head.cols, rows: Array(head.rows).fill(EMPTY), cursor: [0, 0, 0] });
  const step = (s, f) => {
    if (f.s) { s.cols = f.s[0]; s.rows = Array(f.s[1]).fill(EMPTY); }
    for (const row of f.r) s.rows[row[0]] = row;
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
  const rowText = ([, runs]) => {
    let text = "", at = 0;
    for (const [x, , t, width] of runs) {
      text += " ".repeat(Math.max(0, x - at)) + t;
      at = x + (width || [...t].length);
    }
    return text;
  };
  // The first row of the line that a row belongs to, and the text of all its rows.
  const lineStart = (s, y) => { while (y > 0 && s.rows[y - 1][2] & 1) y--; return y; };
  const lineText = (s, y) => {
    let text = rowText(s.rows[y]);
    while (s.rows[y][2] & 1 && y + 1 < s.rows.length) text += rowText(s.rows[++y]);
    return text;
  };
  const screenText = (s) => {
    const lines = [];
    for (let y = 0; y < s.rows.length; y++) if (lineStart(s, y) === y) lines.push(lineText(s, y).trimEnd());
    return lines.join("\n");
  };
  // Where a text stands on the screen, over the ends of rows too: [row, col, width] each.
  const places = (s) => {
    const found = [];
    for (let y = 0; y < s.rows.length; y++) {
      if (lineStart(s, y) !== y) continue;
      let folded = "";
      const cells = [];
      const put = (c, at) => { for (const low of c.toLowerCase()) { folded += low; for (let i = 0; i < low.length; i++) cells.push(at); } };
      for (let row = y; ; row++) {
        let at = 0;
        for (const [x, , t, width] of s.rows[row][1]) {
          for (; at < x; at++) put(" ", [row, at, 1]);
          if (width) { put(t, [row, x, width]); at = x + width; } else for (const c of t) put(c, [row, at++, 1]);
        }
        if (!(s.rows[row][2] & 1) || row + 1 >= s.rows.length) break;
      }
      for (let i = folded.indexOf(needle); i >= 0; i = folded.indexOf(needle, i + needle.length)) {
        for (const cell of new Set(cells.slice(i, i + needle.length))) found.push(cell);
      }
    }
    return found;
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
  // Cells are whole pixels wide, so that lines and blocks of neighbouring cells meet without a
  // seam: letters are set a little closer.
  const measure = () => {
    const probe = make("span", { className: "probe", textContent: "W".repeat(64) });
    screen.append(probe);
    const width = probe.getBoundingClientRect().width / 64;
    probe.remove();
    const whole = Math.floor(width * devicePixelRatio + 0.02) / devicePixelRatio;
    screen.style.setProperty("--cw", (whole || width) + "px");
    screen.style.letterSpacing = (whole ? Math.min(0, whole - width) : 0) + "px";
  };
  const play = make("button", { textContent: "Play" });
  const seek = make("input", { type: "range", min: 0, max: Math.max(1, tail.duration), value: 0, step: 1 });
  seek.setAttribute("aria-label", "position");
  const time = make("span", { className: "time" });
  const speed = make("select", {}, ...[0.5, 1, 2, 4, 8].map((n) => make("option", { value: n, textContent: n + "x" })));
  speed.value = "1";
  const copyButton = make("button", { textContent: "Copy screen" });
  const query = make("input", { type: "search", placeholder: "Search" });
  const found = make("span");
  const help = make("p", { className: "time", hidden: true, textContent: "Keys: space plays and pauses; . , step; ← → 5 seconds, with Shift a minute; [ ] markers; 0-9 tenths; < > speed; / searches; g G start and end; ? shows and hides this." });
  root.append(screen, make("div", { className: "bar" }, play, seek, time, speed),
    make("div", { className: "bar" }, query, found, copyButton), help);

  let shown = -2, now = 0, playing = false, last = 0, needle = "";
  const draw = () => {
    const i = frameAt(now);
    if (i === shown) return;
    shown = i;
    const s = i < 0 ? blank() : stateAt(i);
    const rows = s.rows.map(([, runs, flags]) => {
      const row = make("div", { className: "row" + (flags & 4 ? " dtop" : flags & 8 ? " dbottom" : flags & 2 ? " dwide" : ""), wraps: flags & 1 });
      let x = 0;
      for (const [col, id, text, width] of runs) {
        if (col > x) row.append(" ".repeat(col - x));
        const [fg, bg, at, under, link] = styles[id];
        const el = link ? make("a", { textContent: text, href: link, title: link, target: "_blank", rel: "noopener noreferrer" }) : make("span", { textContent: text });
        let f = fg, b = bg;
        if (at.includes("v")) { f = bg || head.bg; b = fg || head.fg; }
        if (at.includes("c")) f = b || head.bg;
        if (f) el.style.color = f;
        if (b) el.style.background = b;
        if (at.includes("b")) el.style.fontWeight = "bold";
        if (at.includes("d")) el.style.opacity = "0.6";
        if (at.includes("i")) el.style.fontStyle = "italic";
        const line = [at.includes("u") && "underline", at.includes("s") && "line-through"].filter(Boolean);
        if (line.length) el.style.textDecoration = line.concat(under || []).join(" ");
        // The browser's own would stand in the row above.
        if (at.includes("o")) el.style.boxShadow = "inset 0 1px currentColor";
        if (b || at.includes("o")) el.className = "cell";
        if (width) { el.className = "cell"; el.style.width = `calc(var(--cw) * ${width})`; }
        row.append(el);
        x = col + (width || [...text].length);
      }
      return row;
    });
    screen.replaceChildren(...rows);
    const lay = (className, row, col, width) => {
      const el = make("div", { className });
      const wide = s.rows[row]?.[2] & 2 ? 2 : 1;
      el.style.left = `calc(.5rem + var(--cw) * ${col * wide})`;
      el.style.top = `calc(.5rem + ${row * 16}px)`;
      el.style.width = `calc(var(--cw) * ${width * wide})`;
      screen.append(el);
    };
    if (needle) for (const place of places(s)) lay("hit", ...place);
    if (s.cursor[2]) lay("cursor", s.cursor[0], Math.min(s.cursor[1], s.cols - 1), 1);
    screen.style.width = `calc(var(--cw) * ${s.cols} + 1rem)`;
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
    const marks = make("select", { className: "marks" }, make("option", { value: "", textContent: "Markers" }), ...names);
    marks.onchange = () => { if (marks.value !== "") go(tail.moments[marks.value][0]); marks.value = ""; screen.focus(); };
    query.before(marks);
  }
  play.onclick = toggle;
  seek.oninput = () => go(Number(seek.value));
  copyButton.onclick = () => {
    const s = stateAt(Math.max(0, frameAt(now)));
    const area = make("textarea", { value: screenText(s).trimEnd() });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    copyButton.textContent = done ? "Copied" : "Select and copy by hand";
  };

  // A selection is copied as the program wrote it: without blanks at the ends of rows, wrapped rows
  // joined.
  document.addEventListener("copy", (e) => {
    const selection = getSelection();
    if (e.target.matches?.("input, textarea") || !selection.rangeCount || selection.isCollapsed) return;
    const range = selection.getRangeAt(0);
    const rows = [...screen.querySelectorAll(".row")].filter((row) => range.intersectsNode(row));
    if (!rows.length) return;
    let text = "";
    rows.forEach((row, i) => {
      const part = document.createRange(), rest = document.createRange();
      part.selectNodeContents(row);
      rest.selectNodeContents(row);
      if (row.contains(range.startContainer)) part.setStart(range.startContainer, range.startOffset);
      if (row.contains(range.endContainer)) part.setEnd(range.endContainer, range.endOffset);
      // A selection may end between words, where a blank is one that was meant.
      rest.setStart(part.endContainer, part.endOffset);
      text += row.wraps || rest.toString().trim() ? part : part.toString().trimEnd();
      if (!row.wraps && i < rows.length - 1) text += "\n";
    });
    e.clipboardData.setData("text/plain", text);
    e.preventDefault();
  });

  // Search goes through what each frame changed, and jumps from hit to hit.
  let hits = [];
  const search = () => {
    needle = query.value.toLowerCase();
    hits = [];
    const s = blank();
    for (const f of needle ? frames : []) {
      step(s, f);
      if (f.r.some(([y]) => lineText(s, lineStart(s, y)).toLowerCase().includes(needle))) hits.push(f.t);
    }
    found.textContent = needle ? hits.length + (hits.length === 1 ? " moment" : " moments") : "";
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
    const faster = (by) => { speed.selectedIndex = Math.min(speed.length - 1, Math.max(0, speed.selectedIndex + by)); };
    const keys = {
      " ": toggle,
      ArrowLeft: () => go(now - 5000),
      ArrowRight: () => go(now + 5000),
      "Shift+ArrowLeft": () => go(now - 60000),
      "Shift+ArrowRight": () => go(now + 60000),
      ".": () => frames[i + 1] && go(frames[i + 1].t),
      ",": () => frames[i - 1] && go(frames[i - 1].t),
      "[": () => go([...marks].reverse().find((t) => t < now) ?? 0),
      "]": () => go(marks.find((t) => t > now) ?? tail.duration),
      "<": () => faster(-1),
      ">": () => faster(1),
      "/": () => query.focus(),
      g: () => go(0),
      Home: () => go(0),
      G: () => go(tail.duration),
      End: () => go(tail.duration),
      "?": () => { help.hidden = !help.hidden; },
    };
    const key = e.shiftKey && e.key.startsWith("Arrow") ? "Shift+" + e.key : e.key;
    if (key >= "0" && key <= "9") go((tail.duration * Number(key)) / 10);
    else if (Object.hasOwn(keys, key)) keys[key]();
    else return;
    e.preventDefault();
  });
  measure();
  addEventListener("resize", () => { screen.style.letterSpacing = "0px"; measure(); });
  go(frames.length ? frames[0].t : 0);
})();
